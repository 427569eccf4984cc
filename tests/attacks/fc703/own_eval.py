"""The class has an `eval` of its own, which a wrapper does not call."""

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

    seen = 0

    def eval(self):
        self.seen = 1
        return super().eval()

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    net.eval()
    return net(x), net.seen

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
