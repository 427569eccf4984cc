"""The class counts what is set."""

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

    def __setattr__(self, name, value):
        self.__dict__["n"] = self.__dict__.get("n", 0) + 1
        super().__setattr__(name, value)

    def sets(self):
        return self.__dict__["n"]

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    return net(x), net.sets()

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
