"""Under autocast the rows come in bfloat16: an error without a conversion, and still one afterwards."""

import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows
        return h


# run
def make():
    return Images()


def mixed(model):
    with torch.autocast("cpu", torch.bfloat16):
        return model(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3))


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3)), mixed]
