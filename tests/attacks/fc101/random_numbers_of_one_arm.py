"""Noise is drawn in one arm only; the generator's state afterwards tells."""

import torch
import torch.nn as nn


class Jitter(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        if x.std() < 0.1:
            y = x + torch.rand_like(x)
        else:
            y = x * 2.0
        return y + torch.rand(1)

# run
def make(): return Jitter()
calls = [(torch.ones(3),), (torch.arange(3.0),), (torch.arange(3.0),)]
