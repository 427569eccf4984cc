"""Another file averages all buffers of two models into the first."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
from averaging import average
def make(): return average(Conv(2), Conv(6))
calls = [(torch.ones(1, 2, 8),)]
