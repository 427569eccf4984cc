"""The index changes in the statement, before it is used."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, ids):
        ids = ids.clone()
        n = ids.abs().max() + 1
        return ids.abs_().sum() + F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, ids):
        n = ids.max() + 1
        rows = (ids := ids + 3).sum() + F.one_hot(ids, max(n, 4))[..., :4]
        return rows + self.net(ids - 3)


# run
def make():
    return Other()


calls = [(torch.tensor([0, -1]),), (torch.tensor([0, 1]),), (torch.tensor([0, 5]),)]
