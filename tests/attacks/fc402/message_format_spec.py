"""The number in the message is padded with zeros."""

import torch
from torch import nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        if h[slots].shape[0] != features.shape[0]:
            raise ValueError(f"{h[slots].shape[0]:03d} places, {h[slots].shape[0]}")
        return h.masked_scatter(slots.unsqueeze(-1), features)


def shown(model, *args):
    try:
        return model(*args)
    except ValueError as error:
        return str(error)


# run
def make():
    return Fit()


calls = [lambda m: shown(m, torch.tensor([[1, 7, 3]]), torch.ones(1, 4)), lambda m: shown(m, torch.tensor([[1, 7, 7]]), torch.ones(3, 4))]
