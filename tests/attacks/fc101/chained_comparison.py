"""Both bounds are compared; the second one only when the first holds."""

import torch
import torch.nn as nn


class Band(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        level = x.mean()
        if 0 < level < 5:
            y = x * 2
        else:
            y = x + 1
        return y

# run
def make(): return Band()
calls = [(torch.ones(2, 3) * k,) for k in (-1.0, 1.0, 9.0)]
