"""The largest element is of the tensor before it was changed, and is kept in a list and printed."""

import torch
import torch.nn as nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.peaks = []

    def forward(self, x):
        peak = x.max().item()
        x = x - peak
        self.peaks.append(peak)
        low = x.min().item()
        print(f"lowest {low:.2f}")
        return x - low, x.clone().sub_(low)

# run
def make(): return Shift()
calls = [(torch.arange(4.0),), (torch.arange(3),)]
