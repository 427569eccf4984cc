"""The name print goes through two star imports before it gets here."""

import torch
from torch import nn

from tools import *


class Net(nn.Module):
    def forward(self, x):
        print("x", x.shape)
        return x + shown[0]


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),)]
