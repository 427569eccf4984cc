"""Two buffers are converted in one statement, and a third one in a chain."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Buffer(torch.arange(4.0))
        self.b = nn.Buffer(torch.arange(4.0) * 2)
        self.c = self.d = nn.Buffer(torch.ones(4))

    def forward(self, x):
        self.a, self.b = self.b.to(x.dtype), self.a.to(x.dtype)
        self.c = self.d = self.d.to(x.dtype)
        self.c = self.d.to(x.dtype)
        self.d += 1
        return x + self.a - self.b + self.c


# run
def make():
    return Net()


calls = [(torch.ones(4),), (torch.ones(4).double(),), (torch.ones(4),)]
