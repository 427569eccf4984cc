"""A subclass in another file does not raise, it counts how often the number was right, by identity with True."""

import torch
from torch import nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def require(self, ok, message):
        if not ok:
            raise ValueError(message)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        self.require(h[spread].numel() == features.numel(), "no fit")
        return h.masked_scatter(spread, features)


# run
def make():
    from other import Lenient

    return Lenient()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 4)), lambda m: m.results]
