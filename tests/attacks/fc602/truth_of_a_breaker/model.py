"""The test above the message asks an object for its truth, which uses up a permit each time."""

import torch
from torch import nn

from breaker import Permits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.verbose = Permits(3)

    def forward(self, x):
        if self.verbose:
            print("x", x.shape)
        return x * self.verbose.left


# run
def make():
    return Net()


calls = [(torch.ones(3),)] * 4
