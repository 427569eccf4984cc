"""The mask is written in place between the read and the mean."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor):
        keep = ids > 0
        y = x[keep]
        keep.logical_not_()
        return y.mean() + x[keep].mean()


# run
def make():
    return M()


unsafe = True
tolerance = 1e-5
calls = [(torch.linspace(-2, 2, 8), torch.tensor([1, 0, 1, 0, 0, 0, 0, 1])), (torch.randn(8, 3), torch.tensor([1, 0, 1, 0, 0, 0, 0, 1]))]
