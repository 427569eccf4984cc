"""Assigning to ``self.left`` goes through a property that writes into the sizes."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = torch.tensor([[2, 3], [3, 4]])

    @property
    def left(self):
        return int(self.sizes.sum())

    @left.setter
    def left(self, amount):
        self.sizes.clamp_(max=amount)

    def forward(self, x):
        sizes = self.sizes
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            self.left = 2
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
