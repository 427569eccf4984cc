"""A closure holds the plain model, and both are compared."""

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
    plain = net

    def same():
        return plain is net

    net = torch.compile(net, backend="eager")
    return net(x), same()


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
