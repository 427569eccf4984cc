"""Two models share a vocabulary; what one of them does when it is built shows in the other."""

import torch
from torch import nn


class Words:
    def __init__(self):
        self.table = {"<pic>": 7}

    def id_of(self, word):
        return self.table[word]


class Net(nn.Module):
    def __init__(self, words, shift: int = 0):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)
        for word in list(words.table):
            words.table[word] += shift

    def forward(self, ids):
        slots = ids == self.words.id_of("<pic>")
        return self.embed(ids) * (~slots).unsqueeze(-1)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        words = Words()
        self.first = Net(words)
        self.second = Net(words, 2)

    def forward(self, ids):
        return self.first(ids), self.second(ids)


# run
def make():
    return Pair()


calls = [(torch.tensor([[1, 7, 9]]),)]
