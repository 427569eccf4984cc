"""Where nothing is picked, nothing is divided by zero."""

import torch
from torch import nn


class Buckets(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def forward(self, ids):
        n = ids.clone().long()
        far = n >= 100
        n[far] = n[far] // self.size
        return n


# run
def make():
    return nn.ModuleList([Buckets(10), Buckets(0)])


calls = [lambda m: m[0](torch.tensor([1, 100, 250])), lambda m: m[1](torch.tensor([1, 2, 3]))]
