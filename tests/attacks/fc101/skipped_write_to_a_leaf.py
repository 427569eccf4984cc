"""Writing in place to a leaf that wants gradients is an error, also when nothing is written."""

import torch
import torch.nn as nn


class Labels(nn.Module):
    def forward(self, weights: torch.Tensor):
        low = weights < 0
        if low.any():
            weights[low] = 0.0
        return weights * 2

# run
def make(): return Labels()
calls = [(torch.ones(3, requires_grad=True),), (torch.tensor([1.0, -1.0]),)]
grad = True
