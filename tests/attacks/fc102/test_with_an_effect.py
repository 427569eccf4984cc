"""The test takes an item from a list and counts; it has to do so once."""

import torch
import torch.nn as nn


class Queue(nn.Module):
    def __init__(self):
        super().__init__()
        self.limits = [3.0, 2.0, 1.0]
        self.asked = 0

    def limit(self):
        self.asked += 1
        return self.limits.pop()

    def forward(self, x):
        if (x > self.limit()).any():
            raise ValueError("over the limit")
        if (peak := x.max()) > 100:
            raise ValueError(peak)
        return x * peak

# run
def make(): return Queue()
calls = [(torch.ones(2),), (torch.ones(2),), (torch.ones(2),)]
