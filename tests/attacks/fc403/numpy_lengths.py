"""The lengths are numpy's integers, and some of them truth values."""

import numpy as np
import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, sizes):
        lengths = [n for n in sizes]
        owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        plain = [int(n) for n in sizes]
        return owners, torch.repeat_interleave(torch.arange(len(plain)), torch.tensor(plain))


# run
def make():
    return Owners()


calls = [([np.int64(2), np.int64(3)],), (np.array([1, 2]),), ([1, 2],), ([],), (torch.tensor([2, 1]),)]
