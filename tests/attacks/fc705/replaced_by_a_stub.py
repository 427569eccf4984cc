"""Another function is put in the place of torch.compile, which reads the argument."""

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


def fake(net, dynamic=None, **kwargs):
    return (net, dynamic)


def script(x):
    before = torch.compile
    torch.compile = fake
    try:
        net, how = torch.compile(Net(), dynamic="auto", backend="eager")
    finally:
        torch.compile = before
    return net(x), how


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
