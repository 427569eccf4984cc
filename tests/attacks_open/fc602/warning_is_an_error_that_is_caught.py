"""Warnings are errors here, and the error decides which way is taken."""

import warnings

import torch
from torch import nn


class Net(nn.Module):
    def narrow(self, x):
        if x.shape[0] > 2:
            warnings.warn("many rows", RuntimeWarning)
        return x * 2

    def forward(self, x):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                return self.narrow(x)
            except RuntimeWarning:
                return x[:2] * 3


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),)]
