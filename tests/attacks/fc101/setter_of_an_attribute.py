"""Assigning ``self.scale`` goes through a property that keeps a history."""

import torch
import torch.nn as nn


class Tracked(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []
        self.now = torch.ones(())

    @property
    def scale(self):
        return self.now

    @scale.setter
    def scale(self, value):
        self.history.append(value)
        self.now = value

    @torch.no_grad()
    def forward(self, x):
        if x.max() > 4:
            self.scale = x.max() / 2
        return x * self.scale

# run
def make(): return Tracked()
calls = [(torch.ones(3) * k,) for k in (1.0, 9.0, 1.0)]
