"""Complex numbers and halves keep their kind; bounds of halves are those of halves."""

import torch
from torch import nn


class Bound(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor):
        y = x * 1.0
        big = y.abs() > 2
        y[big] = y[big] * 30000.0
        y[big] = y[big] - 1.0
        return y


# run
def make():
    return Bound()


calls = [(torch.arange(4.0),), (torch.arange(4.0).half(),), (torch.tensor([3 + 4j, 1j]),), (torch.arange(4.0).double(),)]
