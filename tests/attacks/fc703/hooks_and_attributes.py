"""Hooks that were there before, attributes that are set and read after: all as it was."""

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
    seen = []
    net.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    net = torch.compile(net, backend="eager")
    net.scale = 3
    y = net(x) * net.scale
    net.train(False)
    return y, seen, net.training, net.lin.weight


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
