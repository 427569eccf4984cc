"""The mask of the first sentence is no mask for all of them."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.fill = nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids)
        slots = ids[:1] == 7
        h[slots] = self.fill
        return h


# run
def make():
    return Net()


calls = [(torch.tensor([[1, 7, 3]]),), (torch.tensor([[1, 7, 3], [7, 7, 2]]),)]
