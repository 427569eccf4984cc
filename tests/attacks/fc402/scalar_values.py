"""Without dimensions, with none at all and with one: counts and sums of what the mask picks."""

import torch
from torch import nn


class Check(nn.Module):
    def forward(self, ids):
        n = ids.long() * 2
        big = n > 4
        if n[big].shape[0] > 3:
            n = n + 1
        total = n[big].sum()
        return total, (n[big] > 0).all(), n[big].numel() == 2


# run
def make():
    return Check()


calls = [(torch.tensor(5),), (torch.tensor(1),), (torch.zeros(0, dtype=torch.long),), (torch.arange(8),), (torch.arange(8).view(2, 4),)]
