"""The module in another file moves the first row on: with rows on top of each other, all of them."""

import torch
from torch import nn

from rotary import Shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Shift()

    def forward(self, x):
        rows, length = x.shape
        places = torch.arange(length).unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        return self.rotary(places)


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),), (torch.ones(4, 3),)]
