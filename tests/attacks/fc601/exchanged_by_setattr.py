"""A function gives the model another vocabulary under a computed name."""

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


def exchange(net, **parts):
    for name, part in parts.items():
        setattr(net, name, part)


# run
def make():
    return Net(types.SimpleNamespace(picture_id=7))


ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), lambda m: exchange(m, words=types.SimpleNamespace(picture_id=9)), (ids,)]
