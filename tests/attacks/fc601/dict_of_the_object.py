"""The table behind the answer is updated through the object's __dict__."""

import types

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


def renumber(net, **numbers):
    vars(net.words).update(numbers)


def build():
    return Net(types.SimpleNamespace(picture_id=7))


# run
make = build
ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), lambda m: renumber(m, picture_id=9), (ids,)]
