"""What is chosen from is the same memory as what is written: identity hands its input on."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = nn.Identity()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        z = self.keep(y)
        low = y < 0
        w = z.exp()
        y[low] = w[low]
        return y + z


# run
def make():
    return Net()


train = True
calls = [(torch.randn(3, 4),)]
