"""When the own attribute is deleted, the answer comes from a fallback."""

import torch
from torch import nn


class Words:
    def __init__(self):
        self.own = {"picture_id": 7}

    def __getattr__(self, name):
        own = self.__dict__.get("own", {})
        if name in own:
            return own[name]
        if name == "picture_id":
            return 9
        raise AttributeError(name)

    def __delattr__(self, name):
        del self.own[name]


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


def reset(net):
    del net.words.picture_id


# run
def make():
    return Net(Words())


ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), lambda m: reset(m), (ids,)]
