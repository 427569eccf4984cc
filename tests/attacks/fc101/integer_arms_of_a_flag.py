"""int and float arms: which dtype comes out depends on the data, and must."""

import torch
import torch.nn as nn


class Bias(nn.Module):
    @torch.no_grad()
    def forward(self, x, ids):
        ids = ids.long()
        if ids.max() > 5:
            offset = ids / 2
        else:
            offset = ids * 2
        if x.max() > 1:
            shift = 1
        else:
            shift = 0.5
        return offset, x + shift

# run
def make(): return Bias()
calls = [(torch.ones(2).int() * k, torch.tensor([k, 1])) for k in (1, 9)]
