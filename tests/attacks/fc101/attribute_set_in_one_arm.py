"""The buffer object stays the same one where the arm is not taken: a view of it was handed out."""

import torch
import torch.nn as nn


class Inverse(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv", torch.ones(4))
        self.original = self.inv

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() > 8:
            self.inv = self.inv / 2
        out = positions.unsqueeze(-1) * self.inv
        self.original.add_(1)
        return out, self.inv

# run
def make(): return Inverse()
calls = [(torch.arange(n),) for n in (3, 3, 12, 3)]
