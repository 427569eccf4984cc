"""A guard against NaN: the arm that is not taken sends zeros through a square, and zero times NaN is no zero."""

import torch
import torch.nn as nn


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.line(x)
        if torch.isfinite(h).all():
            y = h * h
        elif torch.isnan(h).any():
            y = torch.nan_to_num(h)
        else:
            y = h.clamp(-3, 3)
        return y * 2

# run
train = True
def make(): return Guarded()
calls = [(torch.ones(2, 3),), (torch.tensor([[1.0, 2.0, float("nan")], [1.0, 1.0, 1.0]]),), (torch.full((2, 3), 1e38),)]
