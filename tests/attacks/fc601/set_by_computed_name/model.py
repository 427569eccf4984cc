"""The number of the picture word is set again by a loop over names in another file."""

import torch
from torch import nn

from words import Words


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


def build():
    return Net(Words({"<pic>": 7}))


# run
from words import renumber
make = build
ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), lambda m: renumber(m.words, {"picture": 9}), (ids,)]
