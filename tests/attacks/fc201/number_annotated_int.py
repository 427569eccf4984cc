"""What is annotated as an int is given a tensor, a float, a number of numpy's: ``item()`` gives an int of each but one."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, width: int):
        n = torch.tensor(width).item()
        m = torch.tensor([width, 3]).max().item()
        return x[:, : int(n)] * 2, n, m, [n / 2, type(n).__name__, type(m).__name__]

# run
def make(): return Net()
calls = [(torch.ones(2, 9), w) for w in (2, np.int64(2), torch.tensor(2), 2.5, True)]
