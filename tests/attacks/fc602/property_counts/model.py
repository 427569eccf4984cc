"""The property that the message shows counts how often it was read."""

import torch
from torch import nn

from stats import Stats


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = Stats()

    def forward(self, x):
        print("level", self.stats.level, x.shape)
        return x * self.stats.reads


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),)]
