"""The module is converted between the two: rows of another dtype are an error."""

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blank = nn.Embedding(20, 4), nn.Parameter(torch.ones(4))

    def forward(self, ids, convert):
        h = self.embed(ids).clone()
        if convert:
            self.double()
        h[ids == 7] = self.blank
        return h


# run
def make():
    return Heads()


calls = [(torch.tensor([[7, 1, 7]]), False), (torch.tensor([[7, 1, 7]]), True)]
