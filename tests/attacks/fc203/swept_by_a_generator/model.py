"""All tensors of a model are set to those of another one, which a generator hands out."""

import torch
import torch.nn as nn

from layer import Pad


class Net(nn.Module):
    def __init__(self, hop=2):
        super().__init__()
        self.pad = Pad(hop)

    def forward(self, x):
        return self.pad(x)

# run
from averages import taken_over
def make(): return Net()
def taken(net):
    torch.manual_seed(0)
    taken_over(net, Net(3))
    return net(torch.ones(1, 1, 4))
calls = [(torch.ones(1, 1, 4),), taken]
