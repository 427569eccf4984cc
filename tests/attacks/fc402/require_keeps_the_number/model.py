"""The function that checks also keeps the numbers it was shown, in a list of another file."""

import torch
from torch import nn

from other import require, seen


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(h[spread].numel(), features.numel(), "no fit")
        return h.masked_scatter(spread, features)


# run
def make():
    return Fit()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 4)), lambda m: list(seen)]
