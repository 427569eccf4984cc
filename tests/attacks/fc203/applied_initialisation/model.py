"""``apply`` of an initialiser in another file fills what is an integer buffer."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
from initial import initialise
def make(): return Conv().apply(initialise)
calls = [(torch.ones(1, 2, 8),)]
