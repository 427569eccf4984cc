"""A view comes back for short inputs, a new tensor for long ones."""

import torch
import torch.nn as nn


class Crop(nn.Module):
    @torch.no_grad()
    def forward(self, x, positions):
        if positions.max() > 4:
            return x * 2.0
        return x.view(-1).view_as(x)

# run
def make(): return Crop()
calls = [(torch.ones(2, 3), torch.arange(n)) for n in (2, 9)]
