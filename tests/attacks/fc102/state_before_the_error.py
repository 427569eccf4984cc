"""What was counted before the error stays counted; the caller of another kind of error goes on."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.limit = 5

    def forward(self, x):
        self.seen += 1
        limit = self.limit
        if self.seen > 1 and (x > limit).any():
            raise ValueError(f"{self.seen}")
        if (x.sum(-1) == 0).any() or self.seen > 9:
            raise ValueError("empty rows")
        return x * self.seen

# run
def make(): return Net()
calls = [(torch.full((2, 2), v),) for v in (9.0, 1.0, 9.0, 0.0, 2.0)]
def state(m): return m.seen
