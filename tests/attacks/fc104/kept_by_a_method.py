"""``begin`` keeps the tensor; a later turn shrinks what is left of the budget in it."""

import torch
import torch.nn as nn


class Packer(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = None

    def begin(self, sizes):
        self.left = sizes

    def spend(self, amount):
        self.left[1:] -= amount

    def forward(self, x, sizes: torch.Tensor):
        self.begin(sizes)
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            self.spend(1)
        return out.sin()

# run
def make(): return Packer()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [2, 4]]))]
