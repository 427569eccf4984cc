"""The plain case that is rewritten: a mask made by a comparison."""

import torch
import torch.nn as nn


class Pad(nn.Module):
    def forward(self, x, ids):
        out = x * 2
        padding = ids == 0
        if padding.any():
            out[padding] = 0.0
        return out

# run
def make(): return Pad()
calls = [(torch.ones(3, 2), torch.tensor([0, 0, 1])), (torch.ones(3, 2), torch.tensor([1, 2, 3]))]
