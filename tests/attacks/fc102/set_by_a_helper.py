"""A helper sets an attribute before the check: whoever takes the error sees that."""

import torch
import torch.nn as nn


class Helped(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def bump(self, x):
        self.count += 1
        return x + 1

    def forward(self, x):
        x = self.bump(x)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x * 2


# run
compiled = True
def make(): return Helped()
calls = [(torch.ones(2),), (torch.tensor([float("nan")]),), (torch.ones(2),)]
