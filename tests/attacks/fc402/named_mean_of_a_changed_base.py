"""What the mask is made of is another tensor where the mean of the rows is taken."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x: torch.Tensor):
        h = x * 2.0
        y = h[h > 0]
        h = h - 1.0
        return y.mean() + h.sum()


# run
def make():
    return M()


unsafe = True
tolerance = 1e-5
calls = [(torch.linspace(-2, 2, 8),)]
