"""A factor from the host's generator: float64 arithmetic, then rounded to the tensor's kind."""

import random

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        scale = random.uniform(0.9, 1.1)
        if x.dim() > 1:
            print("scale", x.shape)
        return x * scale, x.half() * scale, x.long() * scale


# run
def make():
    return Net()


calls = [(torch.arange(4.0),), (torch.arange(4.0).view(2, 2),)]
