"""A registry has the model before it is compiled, and compares the two."""

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
    models = {"net": net}
    net = torch.compile(net, backend="eager")
    return net(x), any(m is net for m in models.values())


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
