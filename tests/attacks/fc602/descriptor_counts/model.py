"""An attribute of the class is a descriptor of another file: each read takes one from a budget."""

import torch
from torch import nn

from fields import Budget


class Net(nn.Module):
    budget = Budget(10)

    def forward(self, x):
        print("left", self.budget)
        return x * self.budget


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2),)]
