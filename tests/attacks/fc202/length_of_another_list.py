"""``tolist`` of an array of Python, of a storage and of a class of the project: none has a shape."""

import array

import torch
import torch.nn as nn


class Ragged:
    def __init__(self, rows):
        self.rows = rows
        self.shape = (len(rows), max(map(len, rows)))

    def tolist(self):
        return [n for row in self.rows for n in row]


class Count(nn.Module):
    def forward(self, x, words, ids: torch.Tensor):
        n = len(words.tolist())
        m = len(ids.tolist())
        k = len(x.untyped_storage().tolist())
        return x * n * m * k

# run
def make(): return Count()
ids = torch.ones(3)
calls = [(torch.ones(2), words, ids) for words in (array.array("i", [1, 2]), Ragged([[1, 2], [3]]), torch.ones(4, 2), torch.tensor(3))]
