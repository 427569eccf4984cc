"""Padding is switched on after the model was built, as the libraries' vocabularies are told to."""

import torch
from torch import nn


class Words:
    """Stands for one of a library."""

    def __init__(self):
        self._pad = 0

    def __getattr__(self, name):
        if name == "pad_id":
            return self.__dict__["_pad"]
        raise AttributeError(name)

    def enable_padding(self, number):
        self._pad = number


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.pad_id).unsqueeze(-1)


def padded(net, ids, number):
    net.words.enable_padding(number)
    return net(ids)


# run
def make():
    return Net(Words())


calls = [(torch.tensor([[0, 1, 7]]),), lambda m: padded(m, torch.tensor([[0, 1, 7]]), 7)]
