"""A test of several elements is an error, of one element it is none, whatever its shape."""

import torch
import torch.nn as nn


class Switch(nn.Module):
    @torch.no_grad()
    def forward(self, x, limit):
        if x.amax(-1) > 4:
            y = x / 2
        else:
            y = x * 3
        return y

# run
def make(): return Switch()
calls = [(torch.ones(1, 3), 0), (torch.ones(2, 3), 0), (torch.ones(1, 1, 3) * 9, 0), (torch.ones(0, 3), 0)]
