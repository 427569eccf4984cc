"""A wrapper has no truth: asking for it raises an error, which is expected here."""

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
    try:
        found = bool(net) if net else False
    except TypeError:
        found = None
    return net(x), found


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
