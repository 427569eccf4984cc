"""What is annotated as a tensor called mask may hold places: int64 numbers pick rows."""

import torch
from torch import nn


class Put(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask: torch.Tensor):
        h = self.lin(x)
        z = h.abs()
        h[mask] = z[mask]
        return h


# run
def make():
    return Put()


calls = [(torch.randn(4, 4), torch.tensor([0, 2])), (torch.randn(4, 4), torch.tensor([True, False, True, False]))]
