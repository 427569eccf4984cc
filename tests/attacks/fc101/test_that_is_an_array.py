"""The positions are an array of numpy in one branch of the callers: ``max`` of it is no tensor."""

import numpy as np
import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.table / 3
        return torch.as_tensor(positions).unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [(f(n),) for n in (3, 12) for f in (torch.arange, np.arange)]
