"""``span.max()`` gives a Python number: a class of the project that looks like a tensor."""

import torch
import torch.nn as nn

from spans import Span


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, span: Span):
        if span.max() > 8:
            y = self.table / 2
        else:
            y = self.table / 3
        return span.tensor().unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [(Span(n),) for n in (3, 12)]
