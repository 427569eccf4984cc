"""A state in a plain attribute of the module, written in place."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)
        self.kept = None

    def start(self, batch, device):
        self.kept = torch.zeros(batch, 64, device=device)

    def forward(self, x):
        self.kept.copy_(torch.tanh(self.line(x) + self.kept))
        return self.kept * 2


def loop(net, xs):
    net.start(4, xs[0].device)
    return [net(x).clone() for x in xs]
