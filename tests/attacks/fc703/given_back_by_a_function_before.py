"""A function gives back the model, which is kept and called without compiling."""

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


def prepared(net):
    net.to("cpu")
    return net


def script(x):
    GRAPHS.clear()
    torch._dynamo.reset()
    net = Net()
    plain = prepared(net)
    net = torch.compile(net, backend=backend)
    y = plain(x)
    return y, len(GRAPHS), net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
