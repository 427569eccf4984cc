"""A comparison with NaN is false, so the second arm is taken; values only."""

import torch
import torch.nn as nn


class Guarded(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        peak = x.max()
        if not (peak <= 5):
            y = x.clamp(max=5.0)
        else:
            y = x * 2
        if peak < 1:
            y = y + 1
        elif peak >= 1:
            y = y - 1
        else:
            y = torch.zeros_like(y)
        return y

# run
def make(): return Guarded()
calls = [(torch.tensor(v),) for v in ([1.0, 9.0], [0.5, 0.1], [float("nan"), 1.0], [float("inf"), 1.0])]
