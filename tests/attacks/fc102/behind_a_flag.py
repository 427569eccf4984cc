"""A name for a tensor behind flags that are no bools: what it holds is a number, or a tensor of another dtype."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, level=0, share=0.5):
        super().__init__()
        self.level = level
        self.share = share

    def check(self, x):
        low = self.level and x.sum()
        if low:
            raise ValueError("low")
        high = (self.level or self.share) and x[:1]
        x.add_(1)
        if high:
            raise ValueError("high")
        return low, high

    def forward(self, x):
        x = x * 1
        low, high = self.check(x)
        return x, low, high


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([Net(), Net(2), Net(-1, 0.0)])

    def forward(self, x, which: int):
        return self.nets[which](x)


# run
def make():
    return Both()


calls = [(torch.tensor(v), w) for v in ([-1, 1], [0, 3], [-1, -1], [-1.0, 1.0]) for w in range(3)]
