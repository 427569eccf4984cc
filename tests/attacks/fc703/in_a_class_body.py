"""The model is an attribute of a class."""

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


class Config:
    net = Net()
    net = torch.compile(net, backend="eager")


def script(x):
    return Config.net(x), list(Config.net.state_dict())

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
