"""A width that numpy worked out: the item of the tensor is an int, the attribute is np.int64."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.width = np.max(widths)

    def forward(self, x):
        n = torch.tensor(self.width).item()
        return x[:, :n] * 2, n, [n] * 2, n / 3

# run
def make(): return Net([2, 3])
calls = [(torch.ones(2, 9),)]
