"""``dict.get`` has no such thing: the mapping's KeyError is what ``__contains__`` of ``Mapping`` asks for."""

from collections.abc import Mapping

import torch
import torch.nn as nn


class Memory(Mapping):
    def __init__(self, keys, values):
        self.keys_, self.values_ = keys, values

    def __getitem__(self, key):
        found = torch.eq(self.keys_, key)
        if not found.any():
            raise KeyError(key)
        return self.values_[found].sum(0)

    def __iter__(self):
        return iter(self.keys_.unbind())

    def __len__(self):
        return len(self.keys_)


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Memory(torch.tensor([1, 5]), torch.eye(2))

    def forward(self, key):
        return self.memory.get(key, torch.full((2,), 0.5)) * 2

# run
def make(): return Lookup()
calls = [(torch.tensor(5),), (torch.tensor(3),)]
