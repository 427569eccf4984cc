"""print comes from a file of the project and gives the number of what was shown before."""

import torch
from torch import nn

from show import *


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        print("y", y.shape)
        return y + count()


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),)]
