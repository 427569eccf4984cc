"""The like in an object that the module holds."""

import torch
from torch import nn


class State:
    def __init__(self, batch, width, device):
        self.hidden = torch.zeros(batch, width, device=device)

    def put(self, hidden):
        self.hidden.copy_(hidden)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)
        self.state = None

    def forward(self, x):
        self.state.put(torch.tanh(self.line(x) + self.state.hidden))
        return self.state.hidden * 2


def loop(net, xs):
    net.state = State(4, 64, xs[0].device)
    return [net(x).clone() for x in xs]
