"""Asking whether a shape is new remembers it."""

import torch
from torch import nn


class Shapes:
    def __init__(self):
        self.known = []

    def __contains__(self, shape):
        if shape in self.known:
            return True
        self.known.append(shape)
        return False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shapes = Shapes()

    def forward(self, x):
        if x.shape not in self.shapes:
            print("a new shape", x.shape)
        return x + len(self.shapes.known)


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),), (torch.ones(4),)]
