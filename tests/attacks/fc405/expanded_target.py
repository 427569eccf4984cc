"""What is written to is expanded: rows share their memory."""

import torch
from torch import nn


class Close(nn.Module):
    def forward(self, x):
        closed = torch.logical_not(x).unsqueeze(0).expand(3, -1, -1)
        closed[torch.where(closed.sum(-1) == closed.shape[-1])] = False
        return closed


# run
import warnings


def make():
    return Close()


def quiet(model, x):
    with warnings.catch_warnings(record=True):  # that expanded tensors are written is deprecated
        return model(x)


calls = [lambda m: quiet(m, torch.zeros(2, 3)), lambda m: quiet(m, torch.ones(2, 3))]
