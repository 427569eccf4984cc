"""Of no sizes NumPy makes a float, which is no size: the error is caught."""

import numpy as np
import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        x = torch.relu(x)
        try:
            return x.reshape(x.shape[0], np.prod(x.shape[1:]))
        except TypeError:
            return x.unsqueeze(1) + 1

# run
def make(): return Net()
calls = [(torch.ones(2, 3, 4),), (torch.ones(2),)]
