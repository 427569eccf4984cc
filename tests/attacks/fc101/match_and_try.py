"""Branches inside of ``match``, ``try`` and ``finally``: each binds what the next reads."""

import torch
import torch.nn as nn


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions, mode):
        y = self.table / 1
        match mode:
            case "short":
                if positions.max() > 8:
                    y = self.table / 2
                else:
                    y = self.table / 3
            case ("scaled", k):
                if positions.min() < 1:
                    y = self.table * k
                else:
                    y = self.table / 5
        try:
            if positions.max() > 4:
                y = y / 2
            else:
                y = y / 3
            y = y.view(positions.shape[0], -1)
        except RuntimeError:
            y = y * 2
        finally:
            y = y + 1
        return y

# run
def make(): return Modes()
calls = [(torch.arange(n), mode) for n in (3, 4, 12) for mode in ("short", "none", ("scaled", 2), ("scaled", torch.tensor(2.0)), ("scaled", 2j))]
compiled = True
