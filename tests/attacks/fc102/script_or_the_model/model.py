"""What is called where the error is caught is TorchScript on one path only: on the other it is the model."""

import torch
import torch.nn as nn


class Normalise(nn.Module):
    def forward(self, x):
        low, high = x.amin(), x.amax()
        if (high <= low).any():
            raise ValueError("a picture of one colour")
        return (x - low) / (high - low)

# run
from trying import tried
def make():
    model = Normalise()
    return lambda *pictures: tried(model, pictures)
calls = [(torch.arange(4.0), torch.ones(4), torch.arange(3.0))]
