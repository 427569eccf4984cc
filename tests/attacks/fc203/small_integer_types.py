"""Arithmetic of uint8 and int8 tensors wraps round; of Python integers it does not."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, kernel=3, stride=5):
        super().__init__()
        self.register_buffer("kernel", torch.tensor(kernel, dtype=torch.uint8), persistent=False)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.uint8), persistent=False)
        self.register_buffer("large", torch.tensor(100, dtype=torch.int8), persistent=False)

    def forward(self, x):
        x = F.pad(x, (self.kernel - self.stride, 0))
        return F.pad(x, (self.large + self.large, 400))

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),)]
