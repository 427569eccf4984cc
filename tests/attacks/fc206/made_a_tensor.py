"""A tensor is made of the number, and has its dtype."""

import torch
import torch.nn.functional as F
from torch import nn


import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hop = np.prod([2, 3])
        self.scale = np.mean([1.0, 2.0])
        self.small = np.float32(0.1)

    def forward(self, x):
        pad = self.hop - x.shape[-1] % self.hop
        n = int(x.shape[-1] * self.scale)
        m = int(x.shape[-1] * self.small)
        x = F.pad(x, (0, int(pad) + n + m))
        return x, torch.tensor(self.scale), torch.tensor(self.small), torch.as_tensor(self.hop)


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(2, 7),), (torch.ones(2, 8),)]
