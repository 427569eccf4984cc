"""``self.last`` is the input itself, or a copy; the next call changes it in place."""

import torch
import torch.nn as nn


class Ema(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(3)

    @torch.no_grad()
    def forward(self, x):
        x = x.detach()
        self.last.mul_(0.5)
        if x.max() > 4:
            last = x * 1.0 / 2
        else:
            last = x
        self.last = last
        return last + 1

# run
def make(): return Ema()
shared = torch.ones(3)
calls = [(shared,), (shared,), (shared * 9,), (shared,)]
