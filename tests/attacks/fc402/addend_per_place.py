"""One number for each place that is picked, in order, and no number for each column."""

import torch
from torch import nn


class Bias(nn.Module):
    def forward(self, x: torch.Tensor, extra):
        y = x.float() * 2
        low = y < 0
        y[low] = y[low] + extra
        return y


# run
def make():
    return Bias()


calls = [(torch.tensor([1.0, -2, 3, -4]), torch.tensor([10.0, 20.0])), (-torch.ones(2, 2), torch.arange(4.0)), (torch.tensor([[1.0, -2], [-3, 4]]), torch.tensor([10.0, 20.0]))]
