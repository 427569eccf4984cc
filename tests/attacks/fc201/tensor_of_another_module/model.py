"""``tensor`` comes from a star import: it is a function of the project that rounds up to a multiple."""

import torch
import torch.nn as nn

from shapes import *


class Net(nn.Module):
    def forward(self, x):
        n = tensor(x.shape[1]).item()
        return F_pad(x, n), torch.tensor(x.shape[0]).item()

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
