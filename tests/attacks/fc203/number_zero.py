"""A padding of zero is a tensor that is false; ``or`` gives the other one."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, left=0, right=2):
        super().__init__()
        self.register_buffer("left", torch.tensor(left, dtype=torch.int64), persistent=False)
        self.register_buffer("right", torch.tensor(right, dtype=torch.int64), persistent=False)

    def forward(self, x):
        pad = self.left or self.right
        x = F.pad(x, (pad, 0))
        if self.left is not None and not self.left:
            x = x * 2
        return x[..., self.left : -self.right], x[..., -self.left :]

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),)]
