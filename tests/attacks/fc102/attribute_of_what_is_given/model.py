"""The loop of another file calls what an attribute of its parameter holds, and skips what does not pass."""

import torch
import torch.nn as nn


class Normalise(nn.Module):
    def forward(self, x):
        low, high = x.amin(), x.amax()
        if (high <= low).any():
            raise ValueError("a picture of one colour")
        return (x - low) / (high - low)


class Stage:
    def __init__(self, work):
        self.work = work

# run
from batches import normalised
def make():
    stage = Stage(Normalise())
    return lambda *pictures: normalised(stage, pictures)
calls = [(torch.arange(4.0), torch.ones(4), torch.arange(3.0))]
