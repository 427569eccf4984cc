"""A star takes along what the other file imports, over a name of this one's."""

import torch
import torch.nn as nn

from kinds import SDPBackend
from attend import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Attend()

    def forward(self, x):
        return self.attend(x) if SDPBackend.MATH == 7 else x

# run
import warnings
def make(): return Net()
def quiet(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return net(torch.linspace(-1, 1, 64).reshape(1, 2, 4, 8))
calls = [quiet]
