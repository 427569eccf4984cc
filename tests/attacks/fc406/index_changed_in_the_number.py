"""The index is changed in place before its largest is read, and it is of a class with a `max` of its own."""

import torch
import torch.nn.functional as F
from torch import nn


class Counted(torch.Tensor):
    def max(self):
        self.add_(1)
        return super().max()


class Rows(nn.Module):
    def forward(self, index):
        index = index.clone()
        largest = index.add_(2).max() + 1
        first = F.one_hot(index, max(largest, 4))[..., :4]
        index = index.as_subclass(Counted)
        second = F.one_hot(index.clamp(max=3).as_subclass(torch.Tensor), max(index.max() + 1, 4))[..., :4]
        return first.sum(0) + second.sum(0)


# run
def make():
    return Rows()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),)]
