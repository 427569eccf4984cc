"""What is written is what a property gives: the object's own tensor, made anew when it is read."""

import torch
from torch import nn

from other import Memory


class Tagger(Memory):
    def __init__(self):
        super().__init__()
        self.mark = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.keep(x)
        loud = x[:, 0] > 0
        self.hidden[loud] = self.mark
        return self.hidden, self.reads


# run
def make():
    return Tagger()


calls = [(torch.randn(3, 4),), (torch.randn(5, 4),)]
