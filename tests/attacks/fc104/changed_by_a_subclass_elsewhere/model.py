"""``place`` only reads here; a subclass of another file marks the rows that follow as taken."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = torch.tensor([[2, 3], [3, 4]])

    def place(self, out, i, n, value):
        out[i, :n] = value

    def forward(self, x):
        sizes = self.sizes
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            self.place(out, i, height * width, x[i].mean())
        return out.sin()

# run
from taken import Taken
def make(): return Taken()
calls = [(torch.ones(2, 3),)]
