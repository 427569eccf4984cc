"""A function within makes the model of the one around it."""

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


def script(x):
    net = Net()

    def setup():
        nonlocal net
        net = Net()
        net = torch.compile(net, backend="eager")

    setup()
    return net(x), list(net.state_dict())

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
