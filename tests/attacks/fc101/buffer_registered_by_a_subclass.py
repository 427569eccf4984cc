"""A subclass registers the buffer anew, as an integer: the result has the dtype of the branch that was taken."""

import torch
from torch import nn


class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 4
        self.register_buffer("frequencies", torch.linspace(1, 2, 3))

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        if end > self.longest:
            stretch = end / self.longest
            frequencies = self.frequencies / stretch
        else:
            frequencies = self.frequencies
        return positions.unsqueeze(-1) * frequencies


class Whole(Angles):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.tensor([2, 3, 4]))


# run
def make():
    return Whole()


calls = [(torch.arange(n),) for n in (3, 4, 5, 9)]
