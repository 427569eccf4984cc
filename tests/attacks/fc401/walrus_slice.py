"""The values lose their first column inside of the next expression."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.fill = nn.Parameter(torch.zeros(4))

    def forward(self, ids):
        h = self.embed(ids)
        slots = ids == 7
        total = (h := h[:1] * 2).sum()
        h[slots] = self.fill
        return h, total


# run
def make():
    return Net()


calls = [(torch.tensor([[1, 7, 3]]),), (torch.tensor([[1, 7, 3], [7, 7, 2]]),)]
