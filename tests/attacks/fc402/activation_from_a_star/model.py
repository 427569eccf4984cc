"""relu comes from a file of the project, and subtracts the largest value of what it is given."""

import torch
from torch import nn

from acts import *


class Net(nn.Module):
    def forward(self, x):
        y = x.clone() * 2
        low = y < 0
        y[low] = relu(y[low])
        y[~low] = torch.relu(y[~low])
        return y


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(6),)]
