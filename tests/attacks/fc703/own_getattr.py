"""A class that looks up attributes in its own way."""

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

    def __getattr__(self, name):
        if name in ("anything", "compile_count"):
            return name
        return super().__getattr__(name)

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    return net(x), net.anything, net.compile_count

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
