"""Between a mask read and the mean of its name the graph breaks, and what follows runs eagerly."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor):
        keep = ids > 0
        y = x[keep]
        torch._dynamo.graph_break()
        out = y.mean()
        for _ in range(2):
            torch._dynamo.graph_break()
            out = out + 1
        return out


# run
def make():
    return M()


unsafe = True
compiled = True
tolerance = 1e-5
calls = [(torch.linspace(-2, 2, 8), torch.tensor([1, 0, 1, 0, 0, 0, 0, 1])), (torch.randn(8, 3), torch.tensor([1, 0, 1, 0, 0, 0, 0, 1]))]
