"""What is called log is a running mean: warning() takes a value, and the value decides about the scale."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def info(self, value):
        self.total += float(value)
        self.n += 1

    @property
    def mean(self):
        return self.total / max(self.n, 1)


log = Meter()


class Net(nn.Module):
    def forward(self, x):
        log.info(x.mean())
        print("mean so far", log.mean)
        return x - log.mean


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3) * 2,)]
