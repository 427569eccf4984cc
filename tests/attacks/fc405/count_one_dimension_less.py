"""Of nothing and of a single number, how many are not zero."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        on = x > 0
        if len(on.nonzero()) == 0:
            return x - 1
        if on.nonzero().shape[0] > 2:
            return x + 1
        if torch.nonzero(on).size(0) == 2 and len(torch.argwhere(on)) < 5:
            return x * 2
        return x


# run
def make():
    return Net()


calls = [(torch.tensor(1.0),), (torch.tensor(-1.0),), (torch.zeros(0, 3),), (torch.ones(2),), (torch.ones(2, 2),), (torch.ones(1),)]
