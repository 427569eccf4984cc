"""A function says that the name is global; another reads names."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.width = 2
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


net = None


def setup():
    global net
    net = Net()
    net = torch.compile(net, backend="eager")


def names():
    return list(net.state_dict())


def script(x):
    setup()
    return net(x), names()

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
