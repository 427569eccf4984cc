"""A cached property is computed anew after the file was read again."""

import functools

import torch
from torch import nn


class Words:
    def __init__(self, path):
        self.path = path

    def lines(self):
        return ["<pad>", "a", "<pic>"] if self.path == "old" else ["<pad>", "<pic>", "a"]

    @functools.cached_property
    def picture_id(self):
        return self.lines().index("<pic>")


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


def follow(net, path):
    words = net.words
    words.path = path
    words.__dict__.pop("picture_id", None)


# run
def make():
    return Net(Words("old"))


ids = torch.tensor([[0, 1, 2]])
calls = [(ids,), lambda m: follow(m, "new"), (ids,)]
