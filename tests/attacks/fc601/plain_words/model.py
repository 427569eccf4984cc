"""A vocabulary that nobody touches, of a library's kind: the same slots, in both modes."""

import torch
from torch import nn

from words import Words


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(32, 4)

    def forward(self, ids):
        slots = ids == self.words.picture_id
        return self.embed(ids) * (~slots).unsqueeze(-1)


# run
def make():
    return Net(Words({"picture": 7}))


train = True
calls = [(torch.tensor([[1, 7, 9]]),), (torch.tensor([[7, 7]]),)]
