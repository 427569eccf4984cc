"""The constructor keeps an array that shares its memory with the buffer."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)
        self.numbers = self.stride.numpy()

    def widen(self):
        self.numbers[...] = 5

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        self.widen()
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),), (torch.ones(1, 2, 8),)]
