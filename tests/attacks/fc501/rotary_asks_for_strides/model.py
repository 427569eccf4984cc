"""The module in another file looks whether rows lie on top of each other, and computes one then."""

import torch
from torch import nn

from rotary import Rotary


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x):
        rows, length = x.shape
        places = torch.arange(length).unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        return x.unsqueeze(-1) + self.rotary(places), self.rotary.shared


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),), (torch.ones(4, 3),)]
