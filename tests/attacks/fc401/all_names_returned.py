"""All names of the function are handed back: none comes that was not there."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        slots = ids == 7
        rows = self.proj(features)
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return {name: value for name, value in sorted(locals().items()) if torch.is_tensor(value)}


# run
def make():
    return Net()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3))]
