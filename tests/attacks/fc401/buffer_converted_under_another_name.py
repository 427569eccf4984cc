"""The module converts its tensors under another name: rows of the old dtype do not go into the new one."""

import torch
from torch import nn


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    @torch.no_grad()
    def forward(self, x, wide=False):
        y = self.seen + 1
        low = self.seen < 2
        if wide:
            module = self
            module.double()
        self.seen[low] = y[low]
        return self.seen * 1


# run
def make():
    return Kept()


calls = [(torch.ones(3),), (torch.ones(3), True), (torch.ones(3),)]
