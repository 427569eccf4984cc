"""The width is a property that counts; it is asked for once a call."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.asked = 0

    @property
    def width(self):
        self.asked += 1
        return 2 + self.asked

    def forward(self, x):
        width = torch.tensor(self.width)
        return x[:, : width.item()] + x[:, : width.item()]

# run
def make(): return Net()
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
