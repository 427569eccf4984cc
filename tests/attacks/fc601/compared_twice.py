"""The number is compared with a tensor and with a number, and the object goes on to be used elsewhere."""

from bisect import bisect_left

import torch
from torch import nn


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    @property
    def pad_id(self):
        return bisect_left(self.entries, "<pad>")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words(["b", "<pad>", "a"])
        self.embed = nn.Embedding(32, 4)
        self._pad_id = 5

    def count(self, ids):
        return [i for i in ids.flatten().tolist() if i != self.words.pad_id]

    def forward(self, ids):
        rows = self.embed(ids)
        return rows * (self.words.pad_id != ids).unsqueeze(-1) + self._pad_id


# run
def make():
    return Net()


ids = torch.tensor([[0, 1, 7]])
calls = [(ids,), lambda m: m.count(ids), (ids + 1,)]
