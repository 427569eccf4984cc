"""A break in a loop takes the whole function out of graphs, and with it a handler that no graph would come to."""

import torch
import torch.nn as nn


class Shapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        y = self.table / 1
        for _ in range(2):
            if positions.max() > 4:
                y = self.table / 2
            else:
                y = self.table / 3
        try:
            y = y.view(positions.shape[0], -1)
        except RuntimeError:
            y = y * 2
        return y


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        y = self.table / 1
        for _ in range(2):
            if positions.max() > 4:
                y = self.table / 2
            else:
                y = self.table / 3
        try:
            y = y.view(positions.shape[0], -1)
        except TypeError:
            y = y * 2
        return y


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.shapes, self.rows = Shapes(), Rows()

    def forward(self, positions, shapes):
        return self.shapes(positions) if shapes else self.rows(positions)


# run
def make():
    return Both()


calls = [(torch.arange(n), True) for n in (2, 3, 4, 12)] + [(torch.arange(n), False) for n in (1, 2, 4)]
compiled = True
