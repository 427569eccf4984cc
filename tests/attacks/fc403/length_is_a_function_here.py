"""The file's own `len` gives two for everything: the list holds other numbers than lengths, and has another length."""

import torch
from torch import nn


def len(value):
    return 2


class Owners(nn.Module):
    def forward(self, parts):
        lengths = [len(p) for p in parts]
        return torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))


# run
def make():
    return Owners()


calls = [([torch.ones(n) for n in sizes],) for sizes in ((1, 2), (3,), (2, 2, 5))]
