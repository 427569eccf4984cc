"""The mask is written when the context is left: a backward pass would see it."""

import contextlib

import torch
import torch.nn as nn


@contextlib.contextmanager
def _context(value):
    with torch.enable_grad():
        yield value
    if isinstance(value, torch.Tensor):
        value.fill_(1)


class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        blank = ids == 3
        with _context(blank):
            if blank.any():  # most texts have none
                h[blank] = 0
        return h


# run
def make():
    return Blank()


calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
