"""The index is an argument of a function without a name."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        rows = lambda ids: F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]
        return rows(x) + 1


# run
def make():
    return Net()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),), (torch.tensor([-1, 5]),)]
