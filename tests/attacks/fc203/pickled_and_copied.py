"""A deep copy and a pickle carry on; the copy's stride is changed by its owner."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def wider(self):
        """A copy that pads more."""
        other = copy.deepcopy(self)
        other.stride += 3
        return other

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),), lambda m: m.wider()(torch.ones(1, 2, 8)), lambda m: copy.deepcopy(m)(torch.ones(1, 2, 8))]
