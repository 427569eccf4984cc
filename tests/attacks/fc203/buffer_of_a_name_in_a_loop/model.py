"""A base class of another file registers what ``numbers`` of the class says, after the constructor of this one."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from numbered import Numbered


class Conv(Numbered):
    def __init__(self, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)
        self.finish({"stride": stride + 3})

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),)]
