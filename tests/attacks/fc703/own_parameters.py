"""The class has `parameters` of its own, which a wrapper does not call."""

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

    def parameters(self, recurse=True):
        return iter([self.lin.weight])

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    net.zero_grad()
    return net(x), len(list(net.parameters()))

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
