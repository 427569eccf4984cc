"""Checks are found in a registry by another file, which collects the errors of all of them."""

import torch
import torch.nn as nn

from registry import check, problems


@check
def positive(x):
    if torch.le(x, 0).any():
        raise ValueError("not positive")


@check
def small(x):
    if not torch.lt(x, 100).all():
        raise ValueError("too large")


class Net(nn.Module):
    def forward(self, x):
        if self.training:
            positive(x - x.min() + 1)
        return x + len(problems(x))

# run
def make(): return Net()
calls = [(torch.ones(2),), (-torch.ones(2),), (torch.tensor([-1.0, 200.0]),)]
