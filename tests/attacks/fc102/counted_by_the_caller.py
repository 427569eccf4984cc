"""The caller counts, and a helper checks: the number of calls that failed decides later."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def check(self, x):
        if (x < 0).any():
            raise ValueError("negative")

    def forward(self, x):
        self.calls += 1
        self.check(x)
        return x * self.calls


# run
def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]
