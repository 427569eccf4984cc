"""The class is known by another name there, and reached through an attribute of a package."""

import torch
import torch.nn as nn


class Layer(nn.Module):
    def forward(self, x):
        if (x == 0).all():
            raise ValueError("nothing to normalise")
        return x / x.abs().max()


def build(kind):
    return {"layer": Layer}[kind]()

# run
from factory import Chain
def make(): return Chain(["layer", "layer"])
calls = [(torch.ones(2),), (torch.zeros(2),)]
