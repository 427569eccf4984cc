"""The sum over the places that count, of integers that a flag makes larger first."""

import torch
from torch import nn


class Count(nn.Module):
    """Counts."""

    def __init__(self, step: int):
        super().__init__()
        self.step = step

    def forward(self, ids, flag: bool = False):
        n = ids * 2
        even = n > 4
        if flag:
            n = n.unsqueeze(-1).repeat(1, 1, 3)
        return n[even].sum()


# run
def make():
    return Count(2)


calls = [(torch.tensor([[1, 2, 3], [4, 5, 6]]),), (torch.tensor([[1, 2, 3], [4, 5, 6]]), True), (torch.full((3, 3), 4), True)]
