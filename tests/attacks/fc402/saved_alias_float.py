"""float() hands the same tensor on when there is nothing to convert; the gradient needs it as it was."""

import torch
from torch import nn


class Square(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        y = self.lin(x).float() * 2
        z = y.float()
        w = z.view_as(y)
        low = y < 0
        y[low] = w[low] * 3
        return y * self.scale


# run
def make():
    return Square()


train = True
calls = [(torch.randn(4, 4),)]
