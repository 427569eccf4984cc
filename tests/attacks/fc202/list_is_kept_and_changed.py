"""The list is changed in place, kept, and read by its type."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        dims = torch.arange(x.dim()).tolist()
        dims.append(-1)
        dims.pop()
        more = torch.arange(len(x.shape), dtype=torch.int64, device="cpu").tolist()
        self.kept.append(more)
        more.reverse()
        return x.sum(dims), [type(d).__name__ for d in more], type(more).__name__


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2, 3),), (torch.tensor(1.0),)]
