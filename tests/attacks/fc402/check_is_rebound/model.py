"""The function that checks is set anew by another file that is imported, to one that keeps what it gets."""

import torch
from torch import nn


kept = []


def require(ok, message):
    if not ok:
        raise ValueError(message)


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(h[spread].numel() == features.numel(), "no fit")
        return h.masked_scatter(spread, features)


# run
import other
def make():
    other.watch()
    return Fit()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 4)), lambda m: [type(k).__name__ for k in kept]]
