"""What is written is taken from a list: nothing is taken when there is nothing to write."""

import torch
import torch.nn as nn


class Fill(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = [1.0, 2.0, 3.0]

    def forward(self, x):
        out = x * 2.0
        low = out < 0
        if low.any():
            out[low] = self.values.pop()
        return out

# run
def make(): return Fill()
calls = [(torch.ones(3),), (-torch.ones(3),), (-torch.ones(3),)]
def state(m): return m.values
