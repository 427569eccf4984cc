"""Other names for the wrapper, by a walrus and in a list."""

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


def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    y = (m := net)(x)
    return y, [list(n.state_dict()) for n in (net, m)]

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
