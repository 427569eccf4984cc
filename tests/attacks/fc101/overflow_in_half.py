"""``exp`` overflows in the arm that is not taken; in float16 it does for quite small numbers."""

import torch
import torch.nn as nn


class SoftPlus(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        h = x * self.gain
        if h.max() > 10:
            y = h * 1.0
        else:
            y = h.exp().log1p()
        return y * 2

# run
def make(): return SoftPlus()
calls = [(torch.tensor([1.0, 2.0]),), (torch.tensor([1.0, 200.0]),)]
train = True
