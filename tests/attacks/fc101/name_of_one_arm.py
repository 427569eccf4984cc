"""The temporary of one arm hides a global, and is deleted in the other."""

import torch
import torch.nn as nn

scale = torch.full((3,), 10.0)


class Scaled(nn.Module):
    @torch.no_grad()
    def forward(self, x, extra=None):
        width = x.shape[-1]
        x = x.float()
        total = x.sum()
        if total > 0:
            half = total / 2
            y = x * half
        else:
            half = total * 2
            y = x - half
        if extra is not None:
            y = y + half * width
        half = None
        return y, half

# run
def make(): return Scaled()
calls = [(torch.ones(3) * k, e) for k in (1.0, -1.0) for e in (None, 1)]
