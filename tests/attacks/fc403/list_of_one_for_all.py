"""A single length, of the only part, is handed out to all rows of the table."""

import torch
from torch import nn


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 2))

    def forward(self, parts):
        lengths = [p.shape[0] for p in parts]
        return torch.repeat_interleave(self.table, torch.tensor(lengths), dim=0)


# run
def make():
    return Spread()


train = True
calls = [([torch.ones(2)],), ([torch.ones(2), torch.ones(0), torch.ones(1)],)]
