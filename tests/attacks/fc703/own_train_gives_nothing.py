"""The class has a `train` that gives nothing back."""

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

    def train(self, mode=True):
        super().train(mode)

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    net = net.train()
    return net is None

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
