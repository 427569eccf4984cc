"""A function in the function binds the values anew between mask and write."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        z = h.abs()
        low = h < 0

        def widen():
            nonlocal h, z
            h, z = torch.stack([h, h], -1), torch.stack([z, z], -1)

        widen()
        h[low] = z[low]
        return h


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(3),)]
