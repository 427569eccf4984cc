"""The block shifts the ids in place, through another function."""

import torch
from torch import nn
from torch._dynamo.decorators import mark_unbacked


def shift(ids):
    ids.add_(1)
    return ids


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 4)

    def forward(self, ids):
        return self.table(shift(ids))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        rows, length = x.shape
        ids = torch.arange(length).unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(ids, 0)
        mark_unbacked(ids, 0)
        return self.block(ids)


# run
def make():
    return Net()


calls = [(torch.ones(1, 3),), (torch.ones(4, 3),)]
