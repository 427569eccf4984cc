"""The length of a number is an error that no handler here takes: it stays that error."""

import torch
from torch import nn


class Rows(nn.Module):
    def forward(self, x, grid):
        try:
            return x.to(grid.device) * len(grid.tolist())
        except (ValueError, RuntimeError, IndexError):
            return x


# run
def make():
    return Rows()


calls = [(torch.ones(3), torch.tensor([[1, 2], [3, 4]])), (torch.ones(3), torch.tensor(3))]
