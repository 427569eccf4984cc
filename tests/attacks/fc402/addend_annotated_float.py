"""What is annotated as a number is given a tensor with a number for each place."""

import torch
from torch import nn


class Bias(nn.Module):
    def forward(self, x: torch.Tensor, extra: float):
        y = x.float() * 2
        low = y < 0
        y[low] = y[low] + extra
        return y


# run
def make():
    return Bias()


calls = [(torch.tensor([1.0, -2, 3, -4]), 1.0), (torch.tensor([1.0, -2, 3, -4]), torch.tensor([10.0, 20.0]))]
