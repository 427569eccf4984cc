"""A number that int32 does not hold is an error when the module is made; True is 1; strings are no numbers."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int32), persistent=False)

    def forward(self, x):
        return F.pad(x, (self.stride, 0))

# run
def make(): return lambda stride: Conv(stride)(torch.ones(1, 2, 8))
calls = [(s,) for s in (2, True, 2.9, -1, -1.5, 2**31, "3", None, torch.tensor(4), [4], float("nan"))]
