"""What is written into is no tensor but an object of the project, which gets to see what it is asked for."""

import torch
from torch import nn


class Kept:
    def __init__(self):
        self.log = []

    def __setitem__(self, key, value):
        self.log.append((len(key), int(key[1].start), int(key[1].stop), value.shape))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 8, 4))

    def forward(self, x, start: torch.Tensor, kept=None):
        n = x.shape[1]
        self.rows[:, start : start + n] = x
        kept = Kept() if kept is None else kept
        kept[:, start : start + n] = x
        return self.rows * 2, kept


# run
def make():
    return Net()


calls = [(torch.ones(2, 3, 4), torch.tensor(1)), (torch.ones(2, 3, 4), torch.tensor(1), torch.zeros(2, 5, 4))]
