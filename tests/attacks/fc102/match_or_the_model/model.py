"""What replaces the matches of a pattern is called with something else as well, whose ``group`` is the model."""

import torch
import torch.nn as nn


class Normalise(nn.Module):
    def forward(self, x):
        low, high = x.amin(), x.amax()
        if (high <= low).any():
            raise ValueError("a picture of one colour")
        return (x - low) / (high - low)


class Found:
    def __init__(self, model):
        self.group = model

# run
from replacing import replaced
def make():
    found = Found(Normalise())
    return lambda *pictures: replaced("a picture", found, pictures)
calls = [(torch.arange(4.0), torch.ones(4), torch.arange(3.0))]
