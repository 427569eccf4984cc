"""A model that is not compiled, with a part that is."""

import torch
from torch import nn

GRAPHS = []


def backend(gm, inputs):
    GRAPHS.append(1)
    return gm.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.width = 2
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


def script(x):
    torch._dynamo.reset()
    GRAPHS.clear()
    net = Net()
    net.lin = Net()
    net.lin.compile(backend=backend)
    net = torch.compile(net, disable=True)
    return net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
