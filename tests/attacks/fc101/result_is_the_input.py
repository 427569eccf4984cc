"""The arm that is taken hands its input on: what the caller does to it later shows."""

import torch
import torch.nn as nn


class Limit(nn.Module):
    @torch.no_grad()
    def clip(self, x):
        x = x.detach()
        if x.max() > 4:
            y = x.clamp(max=4.0)
        else:
            y = x
        return y

    @torch.no_grad()
    def forward(self, x):
        y = self.clip(x)
        y += 1
        return x * 2

# run
def make(): return Limit()
calls = [(torch.ones(3) * k,) for k in (1.0, 9.0)]
