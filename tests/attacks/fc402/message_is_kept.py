"""The message of the error is what the caller shows, number and all."""

import torch
from torch import nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def check(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        n = h[slots].shape[0]
        if n != features.shape[0]:
            raise ValueError(f"{n!r} places, {features.shape[0]} rows, " + "%s" % n)
        return h.masked_scatter(slots.unsqueeze(-1), features)

    def forward(self, ids, features):
        try:
            return self.check(ids, features)
        except ValueError as error:
            return str(error)


# run
def make():
    return Fit()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 4)), (torch.tensor([[1, 7, 3]]), torch.ones(3, 4))]
