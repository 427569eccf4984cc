"""Floor division and remainder of negative numbers, powers and shifts of tensors and of integers."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=3, dilation=2):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)
        self.register_buffer("dilation", torch.tensor(dilation, dtype=torch.int32), persistent=False)

    def forward(self, x):
        n = x.shape[-1]
        left = (self.stride - n) % self.dilation
        right = (self.stride - n) // self.dilation + n
        x = F.pad(x, (left, right))
        x = F.pad(x, (self.stride**self.dilation - 8, 0))
        if self.stride - n < 0:
            x = x + 1
        for _ in range(self.dilation):
            x = x * 2
        return x[..., : self.stride * self.dilation]

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, n),) for n in (2, 7)]
