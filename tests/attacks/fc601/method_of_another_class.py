"""Another class is given the method, and has no attribute that only this constructor sets."""

import torch
from torch import nn


class Words:
    def __init__(self, text):
        self.text = text

    @property
    def picture_id(self):
        return self.text.index("<pic>")


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


class Other(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        return ids


def build():
    words = Words(["a", "<pic>"])
    made = Other(words)
    tower = Net(words)
    Other.forward = Net.forward
    return made

# run
def make(): return build()
calls = [(torch.tensor([[0, 1, 2]]),)]
