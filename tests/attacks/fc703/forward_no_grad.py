"""A forward under a decorator of PyTorch."""

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


class More(Net):
    @torch.no_grad()
    def forward(self, x):
        return self.lin(x).relu() * 2


def script(x):
    GRAPHS.clear()
    torch._dynamo.reset()
    net = More()
    net = torch.compile(net, backend=backend)
    return net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
