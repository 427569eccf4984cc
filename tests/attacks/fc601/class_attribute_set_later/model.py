"""Another file sets the number on the class, for all vocabularies at once."""

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
import words as module
def make():
    return Net(Words())


ids = torch.tensor([[1, 7, 9]])
calls = [(ids,), lambda m: module.use(9), (ids,)]
