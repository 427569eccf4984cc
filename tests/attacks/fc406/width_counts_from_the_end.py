"""A negative width cuts from the end of as many classes as there are; a tensor as width is read."""

import torch
import torch.nn.functional as F
from torch import nn


class Rows(nn.Module):
    def forward(self, index, width):
        largest = index.max() + 1
        return F.one_hot(index, max(largest, width))[..., :width]


# run
def make():
    return Rows()


calls = [
    (torch.tensor([0, 4]), -2),
    (torch.tensor([0, 4]), 0),
    (torch.tensor([0, 4]), torch.tensor(3)),
    (torch.tensor([0, 4]), True),
]
