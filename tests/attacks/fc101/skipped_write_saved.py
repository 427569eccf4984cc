"""``exp`` keeps its result for backward: an empty write makes it another version."""

import torch
import torch.nn as nn


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = (x * self.gain).exp()
        low = y < 0
        if low.any():
            y[low] = 0.0
        return y * 1.0

# run
def make(): return Weights()
calls = [(torch.ones(2, 3),)]
train = True
