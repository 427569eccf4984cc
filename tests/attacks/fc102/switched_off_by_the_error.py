"""A failed check calls a method that switches the layer off."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.on = True

    def give_up(self):
        self.on = False

    def forward(self, x):
        if (x < 0).any():
            self.give_up()
            raise ValueError("negative")
        return x * 2 if self.on else x


# run
def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]
