"""The loop of another file skips pictures for which the range is wrong: it must go on."""

import torch
import torch.nn as nn


class Normalise(nn.Module):
    def forward(self, x):
        low, high = x.amin(), x.amax()
        if (high <= low).any():
            raise ZeroDivisionError("a picture of one colour")
        return (x - low) / (high - low)

# run
from batches import normalised
def make():
    model = Normalise()
    return lambda *pictures: normalised(model, pictures)
calls = [(torch.arange(4.0), torch.ones(4), torch.arange(3.0))]
