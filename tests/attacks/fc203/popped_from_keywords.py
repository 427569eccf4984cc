"""The number is taken out of the keywords: it can be taken once."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, **kwargs):
        super().__init__()
        self.register_buffer("left", torch.tensor(kwargs.pop("left", 1)), persistent=False)
        self.register_buffer("right", torch.tensor(kwargs.pop("right"), dtype=torch.int64), persistent=False)
        self.conv = nn.Conv1d(width, width, 3, **kwargs)

    def forward(self, x):
        x = F.pad(x, (self.left, self.right))
        return self.conv(x)

# run
def make(): return Conv(left=3, right=2, stride=2)
calls = [(torch.ones(1, 2, 8),)]
