"""What is remembered of a failed check is asked for by the next call."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.failed = 0

    def forward(self, x):
        if (x < 0).any():
            self.failed += 1
            raise ValueError("negative")
        return x * (self.failed + 1)


# run
def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]
