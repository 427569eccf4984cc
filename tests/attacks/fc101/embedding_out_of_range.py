"""Rows past the end of the table are an error: that arm is for short inputs."""

import torch
import torch.nn as nn


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(32.0).view(8, 4))

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() < 8:
            rows = self.table[positions]
        else:
            rows = self.table[positions % 8] + 1
        if positions.min() >= 0:
            more = self.table.index_select(0, positions.clamp(max=7))
        else:
            more = self.table[positions.abs() % 8] * 2
        return rows, more

# run
def make(): return Positions()
calls = [(torch.tensor(v),) for v in ([1, 2], [1, 12], [-1, 3])]
