"""How long a part is it says itself: the second time it is one less."""

import torch
from torch import nn

from parts import Part


class Owners(nn.Module):
    def forward(self, sizes):
        parts = [Part(n) for n in sizes]
        owners = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor([len(p) for p in parts]))
        lengths = [len(p) for p in parts]
        return torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)), owners


# run
def make():
    return Owners()


calls = [([2, 3],)]
