"""The check is handed to another file's function as a value, which tries candidates until one passes."""

import torch
import torch.nn as nn

from choosing import first_that_passes


def sorted_rows(x):
    if (x[1:] < x[:-1]).any():
        raise ValueError("not sorted")
    return x * 2


class Net(nn.Module):
    def forward(self, *candidates):
        return first_that_passes(sorted_rows, candidates)

# run
def make(): return Net()
calls = [(torch.tensor([2, 1]), torch.tensor([1, 2]))]
