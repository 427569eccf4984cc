"""The number is a part of the message, formatted and in brackets, and the caller keeps the message."""

import torch
from torch import nn


class Net(nn.Module):
    def check(self, on):
        n = len(on.nonzero())
        if n > 1:
            raise ValueError(f"[{n:2d}] {[n]} places")

    def forward(self, x):
        try:
            self.check(x > 0)
        except ValueError as error:
            return str(error)
        return x


# run
def make():
    return Net()


calls = [(torch.tensor([1.0, 2, 0, 3]),), (torch.zeros(3),)]
