"""Of a 0-d tensor the largest element is a copy or a view; the number is neither."""

import torch
import torch.nn as nn


class Shift(nn.Module):
    def forward(self, x):
        y = x - x.sum().item()
        z = x.double() * x.squeeze().max().item()
        return y, z, x + x.amax().item()

# run
def make(): return Shift()
calls = [(torch.tensor(2.5),), (torch.tensor([1.5, 2.0]),), (torch.tensor([True, False]),), (torch.tensor([200, 100], dtype=torch.uint8),), (torch.tensor([1.5, 2.25]).half(),)]
