"""What was computed is no leaf: told to ask for gradients by the attribute it raises, by the method it does not."""

import torch
from torch import nn


class Frozen(nn.Module):
    def forward(self, x, grad=False):
        y = torch.tanh(x)
        y.requires_grad = grad
        return y * 2


# run
def make():
    return Frozen()


grad = True
calls = [
    lambda f: f(torch.ones(2)),
    lambda f: f(torch.ones(2, requires_grad=True)),
    lambda f: f(torch.ones(2, requires_grad=True), True),
    lambda f: f(torch.ones(2), 1),
    lambda f: f(torch.ones(2), None),
]
