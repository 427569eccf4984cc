"""The number is a constant for backward; higher derivatives and views as well."""

import torch
import torch.nn as nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        h = x * self.gain
        y = h - h.max().item()
        return y.exp() * h.sum().item(), y * self.gain.max().item()

# run
def make(): return Shift()
calls = [(torch.ones(3),)]
train = True
