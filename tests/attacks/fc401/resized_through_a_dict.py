"""The mask keeps one row for each; the values get rows of three numbers through a dict that holds them too."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h = (x * 2).detach()
        low = h < 0
        z = h.abs()
        state = {"h": h, "z": z}
        for name in state:
            state[name].resize_(x.shape[0], 3).fill_(len(name) + 1.0)
        z.mul_(5)
        h[low] = z[low]
        return h


# run
def make():
    return Net()


calls = [(torch.tensor([1.0, -2.0, 3.0]),), (-torch.ones(4),)]
