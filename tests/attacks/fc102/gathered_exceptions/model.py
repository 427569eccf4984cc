"""The server gathers exceptions in place of results: one bad request must not take the others with it."""

import torch
import torch.nn as nn


class Scorer(nn.Module):
    def forward(self, ids):
        if (ids < 0).any():
            raise ValueError("negative id")
        return ids.float().mean()

# run
from server import serve
def make():
    scorer = Scorer()
    return lambda *requests: serve(scorer, requests)
calls = [(torch.tensor([1, 2]), torch.tensor([-1]), torch.tensor([3]))]
