"""A buffer of a subclass of tensors gives another object each time that it is converted."""

import torch
from torch import nn


class Named(torch.Tensor):
    made = 0

    def to(self, *args, **kwargs):
        type(self).made += 1
        out = super().to(*args, **kwargs)
        return out.clone()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0).as_subclass(Named))

    def forward(self, x):
        before = self.table
        self.table = self.table.to(x.dtype)
        return x + torch.Tensor(self.table), before is self.table, Named.made


# run
def make():
    return Net()


calls = [(torch.ones(4),), (torch.ones(4),)]
