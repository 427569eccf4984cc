"""What is written into is a list, an array of NumPy, or an object that keeps what it is given."""
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, start: torch.Tensor, into=None):
        n = x.shape[0]
        into[start : start + n] = x
        return into


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, start: torch.Tensor, into, table):
        n = x.shape[0]
        table[..., start : start + n] = x
        table[0, start : start + n] = x
        table[:, start : start + n] = x
        return self.net(x, start, into), table


# run
def make():
    return Wide()


calls = [
    (torch.ones(2), torch.tensor(1), torch.zeros(5), torch.zeros(2, 5)),
    (torch.ones(2), torch.tensor(1), [0, 0, 0, 0], np.zeros((2, 5))),
    (torch.ones(2), torch.tensor(1), np.zeros(5), torch.zeros(2, 5)),
]
