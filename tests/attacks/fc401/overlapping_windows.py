"""Windows that overlap share their memory: only the picked places are written."""

import torch
from torch import nn


class Despike(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 4

    def forward(self, signal):
        wave = signal * 2
        windows = wave.unfold(-1, self.width, 1)
        middle = windows.median(-1, keepdim=True).values.expand(-1, self.width).contiguous()
        spikes = (windows - middle).abs() > 1
        windows[spikes] = middle[spikes]
        return wave


# run
def make():
    return Despike()


calls = [(torch.tensor([0.0, 0.1, 5.0, 0.2, 0.3, -4.0, 0.1, 0.0]),)]
