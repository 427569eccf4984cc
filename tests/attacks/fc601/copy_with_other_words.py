"""A copy of the model gets a vocabulary of its own."""

import copy
import types

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def __deepcopy__(self, memo):
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        twin.__dict__["words"] = types.SimpleNamespace(picture_id=self.words.picture_id + 2)
        return twin

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


# run
def make():
    return copy.deepcopy(Net(types.SimpleNamespace(picture_id=7)))


calls = [(torch.tensor([[1, 7, 9]]),)]
