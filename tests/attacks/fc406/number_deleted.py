"""The number of classes is deleted afterwards."""

import torch
import torch.nn.functional as F
from torch import nn


class Other(nn.Module):
    def forward(self, ids):
        n = ids.max() + 1
        rows = F.one_hot(ids, max(n, 4))[..., :4]
        del n
        return rows.sum(0)


# run
def make():
    return Other()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),)]
