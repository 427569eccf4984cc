"""A subclass in another file has methods of its own; none of them may be replaced by what the loop becomes."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def forward(self, x, lengths):
        h = self.first(x)
        total = torch.zeros(())
        for row, length in zip(h, lengths):
            for _ in range(length.item()):
                total = total + row.sum()
        return self.last(h) * total

# run
from wider import Wider
def make(): return Wider()
calls = [(torch.ones(2, 3), torch.tensor([1, 3]))]
