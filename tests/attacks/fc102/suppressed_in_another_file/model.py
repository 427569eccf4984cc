"""A caller in another file suppresses the error and keeps what it had."""

import torch
import torch.nn as nn

from running import Smooth


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = Smooth()

    def forward(self, x):
        return self.smooth(x, self.check)

    def check(self, x):
        if x.isnan().any():
            raise ValueError("not a number")
        return x * 2

# run
def make(): return Checked()
calls = [(torch.ones(3),), (torch.full((3,), float("nan")),)]
