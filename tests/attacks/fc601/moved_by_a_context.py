"""Inside of a context manager the vocabulary answers for the target language."""

import contextlib
import types

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.pad_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


@contextlib.contextmanager
def target(words):
    saved = words.__dict__.copy()
    words.__dict__.update(words.target)
    try:
        yield words
    finally:
        words.__dict__.update(saved)


def both(net, ids):
    first = net(ids)
    with target(net.words):
        return first, net(ids)


# run
def make():
    return Net(types.SimpleNamespace(pad_id=7, target={"pad_id": 9}))


calls = [lambda m: both(m, torch.tensor([[1, 7, 9]]))]
