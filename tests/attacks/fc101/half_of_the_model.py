"""After ``half()`` the tables are float16 and the new tensor is float32: the dtype tells which arm was taken."""

import torch
import torch.nn as nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() > 8:
            row = self.table / 2
        else:
            row = torch.arange(4).float() / 4
        return row + 1

# run
def make(): return Table().half()
calls = [(torch.arange(n),) for n in (3, 12)]
