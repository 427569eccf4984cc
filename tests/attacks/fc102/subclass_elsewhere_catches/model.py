"""A subclass in another file sorts when ``super().forward`` refuses."""

import torch
import torch.nn as nn


class Packed(nn.Module):
    def forward(self, x, lengths):
        if (lengths[1:] > lengths[:-1]).any():
            raise ValueError("lengths have to be sorted")
        return x * lengths.unsqueeze(-1)

# run
from sorting import AnyOrder
def make(): return AnyOrder()
calls = [(torch.ones(2, 2), torch.tensor([2, 1])), (torch.ones(2, 2), torch.tensor([1, 2]))]
