"""The gradient of a standard deviation of equal numbers is not finite."""

import torch
import torch.nn as nn


class Standardise(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        h = x * self.gain
        centred = h - h.mean()
        if h.std() > 0.01:
            y = centred / h.std()
        else:
            y = centred + 0.0
        return y * 2

# run
def make(): return Standardise()
calls = [(torch.arange(6.0),), (torch.ones(6),)]
train = True
