"""A private method gives them to another, which writes into a view."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def _rows(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]

    def forward(self, ids):
        rows = self._rows(ids).transpose(0, 1).transpose(0, 1)
        rows.flatten().add_(1)
        return rows.float(), self._rows(ids).double().sum(0)


# run
def make():
    return Net()


calls = [(torch.tensor([0, 1, 7]),), (torch.tensor([0, 1, 2]),)]
