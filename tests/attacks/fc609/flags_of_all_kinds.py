"""What is assigned is no bool, the tensor no leaf, or the line holds more than the assignment."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, grad=False):
        made = torch.zeros(3)
        made.requires_grad = grad
        whole = torch.ones(3, dtype=torch.long); whole.requires_grad = False; y = x * 2
        try:
            y = torch.relu(x)
            y.requires_grad = False
        except RuntimeError:
            y = y.detach()
        if grad: made.requires_grad = True
        return made, whole, y


# run
import numpy as np


def make():
    return Net()


grad = True
given = torch.ones(3, requires_grad=True)
calls = [(torch.ones(3), *g) for g in ((), (True,), (1,), (None,), (np.bool_(True),))] + [(given, True), (given,)]
