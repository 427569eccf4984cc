"""What a checkpoint brings along is put into the object by the hook that loads it."""

import types

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def get_extra_state(self):
        return dict(self.words.__dict__)

    def set_extra_state(self, state):
        self.words = types.SimpleNamespace(**state)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


# run
def make():
    return Net(types.SimpleNamespace(picture_id=7))


def load(m):
    m.load_state_dict(Net(types.SimpleNamespace(picture_id=9)).state_dict())


ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), load, (ids,)]
