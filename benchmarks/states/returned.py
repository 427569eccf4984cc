"""A state that the call returns and the caller hands on: nothing is written in place."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)

    def forward(self, x, hidden):
        hidden = torch.tanh(self.line(x) + hidden)
        return hidden * 2, hidden


def loop(net, xs):
    hidden, outputs = torch.zeros(4, 64, device=xs[0].device), []
    for x in xs:
        output, hidden = net(x, hidden)
        hidden = hidden.clone()
        outputs.append(output.clone())
    return outputs
