"""A method keeps the buffers in a dict by name, and changes one there."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)
        self.numbers = {"stride": self.stride}

    def widen(self):
        self.numbers["stride"] += 1

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        self.widen()
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),), (torch.ones(1, 2, 8),)]
