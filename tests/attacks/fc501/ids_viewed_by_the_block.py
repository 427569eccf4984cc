"""The block views the ids as one row, which strides of zero do not take."""

import torch
from torch import nn
from torch._dynamo.decorators import mark_unbacked


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 4)

    def forward(self, ids):
        flat = ids.view(-1)
        return self.table(flat), ids


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
