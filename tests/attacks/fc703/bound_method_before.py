"""A method that calls the model itself is taken before it is compiled."""

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

    def twice(self, x):
        return self(self(x))

def script(x):
    GRAPHS.clear()
    torch._dynamo.reset()
    net = Net()
    twice = net.twice
    net = torch.compile(net, backend=backend)
    y = twice(x)
    return y, len(GRAPHS), net(x), len(GRAPHS)

# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
