"""With one channel there is one dimension less: the mask picks elements, or rows."""

import torch
from torch import nn


class Paint(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.colour = nn.Parameter(torch.ones(1))

    def forward(self, ids, flat: bool = False):
        h = self.embed(ids)
        slots = ids == 7
        if flat:
            h = h.mean(-1)
        fill = h.mean((0, 1), keepdim=True).flatten()
        h[slots] = fill
        return h


# run
def make():
    return Paint()


train = True
calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]),), (torch.tensor([[1, 7, 3], [7, 7, 2]]), True)]
