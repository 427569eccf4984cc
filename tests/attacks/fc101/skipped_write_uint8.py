"""A mask of bytes sets the places where it is not 0; numbers of another integer type are places."""

import torch
import torch.nn as nn


class Fill(nn.Module):
    def forward(self, x, keep):
        out = x * 2.0
        drop = (keep == 0).long()
        if drop.any():
            out[drop] = 0.0
        return out

# run
def make(): return Fill()
calls = [(torch.ones(3), torch.tensor([1, 1, 1])), (torch.ones(3), torch.tensor([1, 0, 1]))]
