"""A running mean in a registered buffer."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)
        self.register_buffer("mean", torch.zeros(4, 64))

    def forward(self, x):
        x = self.line(x)
        self.mean.mul_(0.9).add_(x * 0.1)
        return x - self.mean


def loop(net, xs):
    return [net(x).clone() for x in xs]
