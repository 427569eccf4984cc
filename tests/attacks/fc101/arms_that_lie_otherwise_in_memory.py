"""One arm is made of a transposed tensor, the other of a copy of it: what is merged has the strides of the first."""

import torch
import torch.nn as nn


class Flat(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * 1
        g = h.contiguous()
        if x.sum() > 3:
            y = h * 2
        else:
            y = g * 3
        return y.view(-1)

# run
def make(): return Flat()
calls = [(torch.ones(3, 3),), (torch.arange(9.0).view(3, 3).t() - 9,)]
