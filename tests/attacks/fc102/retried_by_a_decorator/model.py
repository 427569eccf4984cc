"""The trainer of another file wraps every model so that bad batches are tried again with zeros in place of NaN."""

import torch
import torch.nn as nn

from robust import forgiving


@forgiving
class Encoder(nn.Module):
    def forward(self, x):
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x.cumsum(0)

# run
def make(): return Encoder()
calls = [(torch.ones(3),), (torch.tensor([1.0, float("inf"), 2.0]),)]
