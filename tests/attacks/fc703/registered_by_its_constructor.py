"""The constructor keeps the model in a list of the module, which is searched later."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


class Known(Net):
    instances = []

    def __init__(self):
        super().__init__()
        Known.instances.append(self)


def script(x):
    Known.instances.clear()
    net = Known()
    net = torch.compile(net, backend="eager")
    return net(x), len(Known.instances)


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
