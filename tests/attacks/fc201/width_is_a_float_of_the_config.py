"""A width from a configuration file may be 4.0; IntTensor makes 4 of it; what it refuses stays an error."""

import torch
import torch.nn as nn


def take(h, n):
    return h[:, :n].sum()


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + take(h, width[0])
        return x

# run
def run(x, width):
    torch.manual_seed(0)
    return Net(width).requires_grad_(False)(x)
def make(): return run
calls = [(torch.ones(2, 8), w) for w in (4, 4.0, 4.5, True, 2**31, torch.tensor(3), -2)]
compiled = True
