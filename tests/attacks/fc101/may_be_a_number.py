"""What is asked for being a tensor may be a number: what is done with it then says nothing of the rest."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("near", torch.ones(3))
        self.register_buffer("far", torch.ones(3) * 2)

    def forward(self, x, gain):
        if torch.is_tensor(gain):
            gain = gain.sum()
        h = torch.sin(self.near)
        if gain > 1:
            h = torch.cos(self.near)
        return x * h

    def turn(self, x, gain):
        if torch.is_tensor(gain):
            return x + gain.mean()
        return x * (self.far if gain > 1 else self.near)


# run
def make():
    return Net()


calls = [
    (torch.ones(2, 3), torch.tensor([1.0, 2.0])),
    (torch.ones(2, 3), 2),
    lambda net: [Net().turn(torch.ones(2, 3), g) for g in (2, 1, torch.tensor([1.0]))],
]
