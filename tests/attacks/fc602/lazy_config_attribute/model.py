"""The settings are loaded when one of them is read for the first time, here for a message."""

import torch
from torch import nn

from settings import Lazy


config = Lazy()


class Net(nn.Module):
    def forward(self, x):
        print("verbosity", config.verbosity)
        return x * (2 if config.loaded else 1)


# run
def make():
    return Net()


calls = [(torch.ones(2),)]
