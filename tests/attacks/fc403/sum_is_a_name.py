"""A local name is called sum, and an argument len."""

import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, parts, sum=None):
        lengths = [len(p) for p in parts]
        owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        return owners if sum is None else owners + sum


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],), ([torch.ones(2), torch.ones(3)], 4)]
