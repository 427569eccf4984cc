"""The number is drawn in evaluation too, and the host's generator is asked again afterwards."""

import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.layerdrop = 0.5

    def forward(self, x):
        for layer in self.layers:
            p = random.random()
            skip = self.training and p < self.layerdrop
            if not skip:
                x = layer(x)
        print("layers", len(self.layers))
        return x, random.random()


# run
def make():
    return Net().eval()


calls = [(torch.randn(2, 4),), lambda m: m.train()(torch.ones(2, 4)), lambda m: random.random()]
