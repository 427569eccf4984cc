"""What is divided by the number takes from a list, counts or draws: it is written once."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, hop: int = 3):
        super().__init__()
        self.register_buffer("hop", torch.tensor(hop), persistent=False)
        self.register_buffer("win", torch.tensor(2 * hop), persistent=False)
        self.axes = [-1, 1] * 20
        self.asked = 0

    def forward(self, x):
        n = (x.shape[self.axes.pop()] - self.win) / self.hop + 1
        x = F.pad(x, (0, math.ceil(n)))
        rows = int((x.shape[self.axis()] - self.win) / self.hop) + 1
        more = int((x.shape[-int(torch.randint(1, 2, ()))] - self.win) / self.hop) + 1
        plain = int((x.shape[-1] - self.win) / self.hop) + 1
        return x[:, :rows], F.pad(x, (0, more)), F.pad(x, (0, plain)), len(self.axes)

    def axis(self):
        self.asked += 1
        return 1


# run
def make():
    return Net()


calls = [(torch.arange(float(k)).reshape(1, k),) for k in (10, 23)]
