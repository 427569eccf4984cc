"""A method looks at all attributes."""

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

    def fields(self):
        return sorted(k for k in self.__dict__ if "compiled" in k and self.__dict__[k])

def script(x):
    net = Net()
    net = torch.compile(net, backend="eager")
    return net(x), net.fields()

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
