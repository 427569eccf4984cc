"""Whether it can be compiled is tried elsewhere, and the answer is used."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


def compiled(net):
    return torch.compile(net, backend="eager", dynamic="auto")


def script(x):
    net = Net()
    try:
        run, fast = compiled(net), True
    except AssertionError:
        run, fast = net, False
    return run(x), fast


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
