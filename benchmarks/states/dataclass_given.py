"""A dataclass that the caller makes and that is written in place."""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    total: torch.Tensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)

    def forward(self, x, state: State):
        state.hidden.copy_(torch.tanh(self.line(x) + state.hidden))
        state.total.add_(state.hidden)
        return state.total * 2


def loop(net, xs):
    state = State(torch.zeros(4, 64, device=xs[0].device), torch.zeros(4, 64, device=xs[0].device))
    return [net(x, state).clone() for x in xs]
