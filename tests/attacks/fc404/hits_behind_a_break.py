"""Between the groups that are read and the loop the graph breaks, and the loop, which breaks it too, runs eagerly."""

import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)

    def forward(self, x):
        torch._dynamo.graph_break()
        return self.up(x)


class Experts(nn.Module):
    def __init__(self, count: int = 3):
        super().__init__()
        self.count = count
        self.up = nn.ModuleList([Expert() for _ in range(count)])

    def forward(self, x, chosen, weights):
        mask = F.one_hot(chosen, num_classes=self.count).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        torch._dynamo.graph_break()
        out = torch.zeros_like(x)
        for expert in hit:
            place, token = torch.where(mask[expert].squeeze(0))
            y = self.up[expert](x[token])
            y = y * weights[token, place, None]
            out.index_add_(0, token, y)
        return out


# run
def make():
    return Experts()


unsafe = True
compiled = True
tolerance = 1e-5
chosen = torch.tensor([[0, 1], [2, 1], [0, 2]])
weights = torch.rand(3, 2)
calls = [(torch.randn(3, 4), chosen, weights)]
