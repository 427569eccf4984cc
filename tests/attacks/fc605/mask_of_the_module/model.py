"""The mask is a buffer of the module, in a subclass an expanded one, and a list in another."""

import torch
from torch import nn


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.zeros(4, 4)

    def forward(self, bounds: torch.Tensor):
        mask = self.mask
        for i in range(1, len(bounds)):
            mask[bounds[i - 1] : bounds[i], bounds[i - 1] : bounds[i]] = 1
        return mask * 2


# run
from other import Wide
def make():
    return nn.ModuleList([Blocks(), Wide()])


calls = [lambda m: [part(torch.tensor([0, 2, 4])) for part in m]]
