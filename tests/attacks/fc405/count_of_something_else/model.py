"""nonzero() of the project's own class gives pairs, and its length is the number of these."""

import torch
from torch import nn

from sparse import Pairs


class Net(nn.Module):
    def forward(self, x):
        pairs = Pairs(x)
        on = x > 0
        if len(pairs.nonzero()) != 2:
            raise ValueError("two names are needed")
        if len(on.nonzero()) > 3:
            raise ValueError(f"{len(on.nonzero())} are too many")
        return x * 2


# run
def make():
    return Net()


calls = [(torch.tensor([1.0, -2, 3]),), (torch.ones(5),)]
