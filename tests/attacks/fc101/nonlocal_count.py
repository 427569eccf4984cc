"""The nested function reads the name that the arms set, after they have set it."""

import torch
import torch.nn as nn


class Closure(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        scale = x.new_ones(())

        def apply(y):
            return y * scale

        before = apply(x)
        if x.max() > 4:
            scale = scale / 2
        else:
            scale = scale * 3
        return before, apply(x)

# run
def make(): return Closure()
calls = [(torch.ones(3) * k,) for k in (1.0, 9.0)]
