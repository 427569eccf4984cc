"""The constructor gives the model to a sampler, which calls it."""

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


class Sampler:
    def __init__(self, net):
        self.net = net

    def sample(self, x):
        return self.net(x)


class More(Net):
    def __init__(self):
        super().__init__()
        self.sampler = Sampler(self)


def script(x):
    GRAPHS.clear()
    torch._dynamo.reset()
    net = More()
    net = torch.compile(net, backend=backend)
    y = net.sampler.sample(x)
    return y, len(GRAPHS), net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
