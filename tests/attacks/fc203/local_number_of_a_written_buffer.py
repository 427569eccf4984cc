"""A number of the constructor is the buffer that is negated in place before the next one is made of it."""

import torch
from torch import nn


class Framed(nn.Module):
    def __init__(self, width: int, stride: int):
        super().__init__()
        stride = torch.tensor(stride, dtype=torch.int64)
        self.hop = nn.Buffer(stride, persistent=False)
        torch._foreach_neg_((self.hop,))
        self.gap = nn.Buffer(torch.tensor(width, dtype=torch.int64) + stride, persistent=False)

    def forward(self, x):
        return nn.functional.pad(x, (0, int(self.gap)))


# run
def make():
    return Framed(5, 2)


calls = [(torch.linspace(-1, 1, n).reshape(1, n),) for n in (8, 9)]
