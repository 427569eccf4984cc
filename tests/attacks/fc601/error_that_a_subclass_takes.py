"""A subclass takes the error that reading the attribute raises."""

from bisect import bisect_left

import torch
import torch.nn as nn


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    @property
    def picture_id(self):
        raise AssertionError
        return bisect_left(self.entries, "<pic>")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words(["a", "b", "<pic>"])  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


class Sub(Net):
    def forward(self, *args, **kwargs):
        try:
            return super().forward(*args, **kwargs)
        except Exception:
            return args[0]


# run
def make():
    return Net()


calls = [(torch.tensor([[0, 1, 2, 3]]),), (torch.tensor([[1, 1, 0, 2], [3, 2, 1, 0]]),)]

Net = Sub
