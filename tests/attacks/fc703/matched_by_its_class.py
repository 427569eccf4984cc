"""The class decides what is done with the model, by a pattern."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    match net:
        case Net():
            return net(x)
        case _:
            return net(x) * 2


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
