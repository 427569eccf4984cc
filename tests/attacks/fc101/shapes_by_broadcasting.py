"""One arm has a row, the other the whole: torch.where would broadcast."""

import torch
import torch.nn as nn


class Row(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("row", torch.ones(1, 3))

    @torch.no_grad()
    def forward(self, x):
        if x.max() > 4:
            scale = self.row / 2
        else:
            scale = x.to(self.row.dtype) / 2
        return scale

# run
def make(): return Row()
calls = [(torch.ones(2, 3) * k,) for k in (1.0, 9.0)]
