"""A subclass in another file picks places by number, and one of them twice."""

import torch
from torch import nn


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def places(self, x):
        return x[:, 0] > 0

    def forward(self, x):
        h = self.lin(x)
        z = h.abs()
        picked = self.places(x)
        h[picked] = z[picked]
        return h


# run
def make():
    from other import First

    return nn.ModuleList([Picker(), First()])


x = torch.tensor([[1.0, 2, 3, 4], [-1, 2, 3, 4], [1, 0, 0, 0]])
calls = [lambda m: [part(x) for part in m]]
