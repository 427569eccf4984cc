"""``while`` on data, with ``else`` and ``break``; the branch inside is taken in some turns."""

import torch
import torch.nn as nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        turns = 0
        y = self.table / 1
        while turns < 5:
            turns += 1
            if positions.max() > 8:
                y = y / 2
                positions = positions - 3
            else:
                y = y * 3
                positions = positions + 1
            if turns == positions.shape[0]:
                break
        else:
            y = y + 1
        return y, positions, turns

# run
def make(): return Fit()
calls = [(torch.arange(n),) for n in (3, 12, 16)]
