"""Without leave for what rounds in another way the loop stays: also for experts that mix rows."""

import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, count: int = 3):
        super().__init__()
        self.count = count
        self.up = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(count)])

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for expert in range(self.count):
            mask = chosen == expert
            rows = mask.nonzero().squeeze(-1)
            if rows.numel() > 1:
                out[rows] += self.up[expert](x[rows])
        print("done", out.shape)
        return out


# run
def make():
    return Experts()


train = True
calls = [(torch.randn(6, 4), torch.tensor([0, 1, 1, 0, 1, 2]))]
