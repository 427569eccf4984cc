"""A function is mapped over the parts inside of the message, and normalises them in place."""

import torch
from torch import nn


def normed(part):
    return part.div_(part.sum())


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        print("parts", *map(normed, y))
        print("sorted", sorted(y, key=lambda row: row.mul_(2).sum().item()))
        return y


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),)]
