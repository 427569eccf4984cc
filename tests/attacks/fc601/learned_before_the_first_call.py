"""The vocabulary learns its words after the model was built: asked earlier, it raises."""

import torch
from torch import nn


class Words:
    def __init__(self):
        self._table = None

    @property
    def picture_id(self):
        if self._table is None:
            raise RuntimeError("not fitted")
        return self._table["<pic>"]

    def fit(self, words):
        self._table = {word: i for i, word in enumerate(words)}
        return self


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


def build():
    words = Words()
    net = Net(words)
    words.fit(["a", "<pic>", "b"])
    return net


# run
make = build
calls = [(torch.tensor([[0, 1, 2]]),)]
