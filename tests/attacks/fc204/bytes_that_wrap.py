"""Bytes that wrap, an exclusive or of bools, a diagonal that is filled."""

import torch
from torch import nn


class Net(nn.Module):
    def pairs(self, labels, other):
        same = (labels.unsqueeze(1) == other.unsqueeze(0)).byte()
        diff = same ^ 1
        same.fill_diagonal_(0)
        wrapped = (labels * 100).char() + (labels * 30000).short()
        a, p = torch.where(same)
        b, n = torch.where(diff)
        return a, p, b, n, torch.bitwise_xor(same, diff), wrapped

    def forward(self, x, labels):
        a, p, b, n, x_or, wrapped = self.pairs(labels, labels)
        return (x[a] - x[p]).pow(2).sum() - (x[b] - x[n]).pow(2).sum(), x_or, wrapped


# run
unsafe = True
train = True


def make():
    return Net()


calls = [(torch.arange(8.0).reshape(4, 2).requires_grad_(), torch.tensor([0, 1, 0, 5])),
         (torch.arange(8.0).reshape(4, 2).requires_grad_(), torch.tensor([0, 0, 0, 0]))]
