"""What was drawn is moved below zero through a view of it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.drop = drop

    def forward(self, x):
        probs, luck = torch.rand(4), torch.rand(4, 1)
        probs.view(-1).sub_(0.5)
        chance = torch.rand(4, 1)
        flat = chance.squeeze(1)
        flat -= 0.5
        for i in range(4):
            if probs[i] < self.drop:
                x = x + i
            if chance[i] < self.drop:
                x = x * 3
        return x + luck.sum()


# run
def make():
    return Net()


calls = [(torch.ones(3),)] * 3
