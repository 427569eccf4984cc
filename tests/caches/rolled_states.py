"""A state space block: the last inputs of a convolution are rolled on, and the state is written in place."""

from __future__ import annotations

import torch
import torch.nn as nn

UNSEEN = "no index: each step moves all of it"


class States:
    def __init__(self, batch, layers, width, taps):
        self.conv = [torch.zeros(batch, width, taps) for _ in range(layers)]
        self.ssm = [torch.zeros(batch, width, 4) for _ in range(layers)]
        self.seen = False


class Mixer(nn.Module):
    def __init__(self, layer, width, taps=3):
        super().__init__()
        self.layer, self.taps = layer, taps
        self.weight = nn.Parameter(torch.linspace(-1, 1, width * taps).view(width, taps))
        self.decay = nn.Parameter(torch.linspace(0.1, 0.9, width * 4).view(width, 4))
        self.out = nn.Linear(4, 1)

    def forward(self, x, states):
        conv, ssm = states.conv[self.layer], states.ssm[self.layer]
        outputs = []
        for t in range(x.shape[1]):
            conv.copy_(torch.roll(conv, shifts=-1, dims=-1))
            conv[:, :, -1] = x[:, t]
            h = (conv * self.weight).sum(-1)
            ssm.copy_(ssm * self.decay + h.unsqueeze(-1))
            outputs.append(self.out(ssm).squeeze(-1))
        return torch.stack(outputs, dim=1)


class Model(nn.Module):
    def __init__(self, width=6, layers=2):
        super().__init__()
        self.mixers = nn.ModuleList([Mixer(i, width) for i in range(layers)])

    def forward(self, x, states):
        for mixer in self.mixers:
            x = x + torch.tanh(mixer(x, states))
        if not states.seen:
            states.seen = True
        return x


def build():
    return Model().eval().requires_grad_(False)


def decode(model, batch, steps=20):
    states = States(batch, 2, 6, 3)
    x, outputs = torch.linspace(-1, 1, batch * 3 * 6).view(batch, 3, 6), []
    for _ in range(steps + 1):
        y = model(x, states)
        outputs.append(y)
        x = y[:, -1:] / 2
    return [*outputs, *(s.clone() for s in (*states.conv, *states.ssm))]


def rounds():
    return [lambda model, batch=batch: decode(model, batch) for batch in (1, 3, 2)]


def in_turn(model):
    one, other, outputs = States(1, 2, 6, 3), States(2, 2, 6, 3), []
    for i in range(4):
        outputs += [model(torch.full((1, 1, 6), i / 4), one), model(torch.full((2, 1, 6), -i / 4), other)]
    return outputs


def other_batch(model):
    return model(torch.ones(3, 1, 6), States(2, 2, 6, 3))  # does not fit


def harder():
    return [in_turn, other_batch, lambda model: decode(model, 2, 4), lambda model: decode(model, 2, 2)]
