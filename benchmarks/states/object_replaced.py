"""A recurrent state in an object that comes with the call, replaced by each call."""

import torch
from torch import nn


class State:
    def __init__(self, batch, width, device):
        self.hidden = torch.zeros(batch, width, device=device)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)

    def forward(self, x, state: State):
        state.hidden = torch.tanh(self.line(x) + state.hidden)
        return state.hidden * 2


def loop(net, xs):
    state = State(4, 64, xs[0].device)
    return [net(x, state).clone() for x in xs]
