"""The tensor is appended to a list of another file's object, which changes all of its tensors."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from schedule import Schedule


class Conv(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)
        self.schedule = Schedule()
        self.schedule.add(self.stride)

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        self.schedule.step()
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),), (torch.ones(1, 2, 8),)]
