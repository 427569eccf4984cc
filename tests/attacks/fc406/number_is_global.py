"""The number of classes is a global, or is read by a function inside."""

import torch
import torch.nn.functional as F
from torch import nn


LARGEST = 0


class Net(nn.Module):
    def forward(self, ids):
        global LARGEST
        LARGEST = int(ids.max()) + 1
        rows = F.one_hot(ids, max(LARGEST, 4))[..., :4]
        return rows.sum(0)


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, ids):
        n = int(ids.max()) + 1
        rows = F.one_hot(ids, max(n, 4))[..., :4]

        def more():
            return rows.sum(0) * n

        return more() + self.net(ids) + LARGEST


# run
def make():
    return Other()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),)]
