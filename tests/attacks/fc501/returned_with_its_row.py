"""The row goes out beside the ids that were made of it: they share their memory."""

import torch
from torch import nn


class Net(nn.Module):
    def ids(self, x):
        rows, length = x.shape
        return (row := torch.arange(length)).unsqueeze(0).expand(rows, -1), row

    def forward(self, x):
        places, row = self.ids(x)
        row += 1
        return x + places


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),)]
