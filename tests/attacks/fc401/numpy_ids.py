"""Words that come as a numpy array make a mask of numpy's, which picks rows as well."""

import numpy as np
import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = self.embed(torch.as_tensor(ids))
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows
        return h


# run
def make():
    return Images()


calls = [(np.array([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3)), (torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3))]
