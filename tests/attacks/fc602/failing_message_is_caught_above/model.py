"""A message that cannot be written is caught in another file, which takes another way then."""

import torch
from torch import nn


class Core(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = {2: "two", 3: "three"}

    def forward(self, x):
        print("rows", self.names[x.shape[0]])
        return x * 2


# run
def make():
    from other import Net

    return Net()


calls = [(torch.ones(2),), (torch.ones(5),)]
