"""The buffers are put into a tuple and doubled in a loop."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)
        self.register_buffer("kernel", torch.tensor(3, dtype=torch.int64), persistent=False)
        for number in (self.stride, self.kernel):
            number.mul_(2)

    def forward(self, x):
        x = F.pad(x, (self.stride, self.kernel))
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),)]
