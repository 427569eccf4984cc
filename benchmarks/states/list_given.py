"""A list of states, one for each layer, that comes with the call and is written in place."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = nn.ModuleList([nn.Linear(64, 64) for _ in range(2)])

    def forward(self, x, states: list[torch.Tensor]):
        for line, state in zip(self.lines, states, strict=True):
            state.copy_(torch.tanh(line(x) + state))
            x = state * 2
        return x


def loop(net, xs):
    states = [torch.zeros(4, 64, device=xs[0].device) for _ in net.lines]
    return [net(x, states).clone() for x in xs]
