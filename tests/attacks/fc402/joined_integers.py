"""The sum over the places that count, of integers that a flag repeats first."""

import torch
from torch import nn


class Count(nn.Module):
    """Counts."""

    def __init__(self, step: int):
        super().__init__()
        self.step = step

    def forward(self, x, flag: bool = False):
        n = x.long() * 2
        big = n > 4
        if flag:
            n = n.unsqueeze(-1).repeat(1, 1, 3)
        return n[big].sum()


# run
def make():
    return Count(2)


x = torch.tensor([[1, 2, 3], [4, 5, 6]])
calls = [(x,), (x, True), (torch.full((3, 3), 4), True), (torch.full((3, 3), 1), True)]
