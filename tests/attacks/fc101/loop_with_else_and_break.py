"""The value after the loop is of the last turn that ran; ``else`` runs without a ``break``."""

import torch
import torch.nn as nn


class Iterate(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        for step in range(4):
            peak = x.max()
            if peak > 4:
                x = x / 2
            else:
                x = x * 3
            if step > x.shape[0]:
                break
        else:
            x = x + 1
        if peak > 8:
            x = x - 1
        return x

# run
def make(): return Iterate()
calls = [(torch.ones(n) * k,) for n in (1, 5) for k in (1.0, 9.0)]
