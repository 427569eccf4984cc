"""A function that got the model before gives a function that calls it without compiling."""

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


def caller(net):
    def call(x):
        return net(x)

    return call


def script(x):
    GRAPHS.clear()
    torch._dynamo.reset()
    net = Net()
    call = caller(net)
    net = torch.compile(net, backend=backend)
    y = call(x)
    return y, len(GRAPHS), net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
