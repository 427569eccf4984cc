"""Each turn binds the values anew; what is replaced are elements, not rows."""

import torch
from torch import nn


class Smooth(nn.Module):
    def __init__(self, turns):
        super().__init__()
        self.turns = turns

    def forward(self, x):
        y = x.float() * 2
        for _ in range(self.turns):
            low = y < 0
            z = torch.abs(y)
            y[low] = z[low]
            y = y - 0.5
        return y


# run
def make():
    return Smooth(3)


calls = [(torch.randn(3, 4),), (torch.randn(2, 2, 5),)]
