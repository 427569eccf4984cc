"""A mask without dimensions picks all or nothing, with one dimension more."""

import torch
from torch import nn


class Check(nn.Module):
    def forward(self, ids):
        n = ids * 2
        some = n.sum() > 4
        return n[some].sum(), n[some].any(), n[some].all()


# run
def make():
    return Check()


calls = [(torch.tensor([[1, 2], [3, 4]]),), (torch.tensor([[0, 1]]),), (torch.tensor(5),), (torch.tensor(1),)]
