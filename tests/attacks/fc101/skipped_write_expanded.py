"""An expanded tensor cannot be written in place; it is not, where nothing is set."""

import torch
import torch.nn as nn


class Bias(nn.Module):
    def forward(self, x):
        bias = (x * 2).sum(0, keepdim=True).expand(4, -1)
        low = bias < 0
        if low.any():
            bias[low] = 0.0
        return bias + 1

# run
def make(): return Bias()
calls = [(torch.ones(2, 3),)]
