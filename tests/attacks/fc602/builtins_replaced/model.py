"""Another file of the project puts its own function in the place of print."""

import torch
from torch import nn

import tee


class Net(nn.Module):
    def forward(self, x):
        print("x", x.shape)
        return x + len(tee.lines)


# run
def make():
    tee.install()
    return Net()


def state(net):
    tee.remove()


calls = [(torch.ones(2),), (torch.ones(2),)]
