"""sum comes from a file of the project, and counts from one on."""

import torch
from torch import nn

from maths import *


class Owners(nn.Module):
    def forward(self, parts):
        lengths = [len(p) for p in parts]
        owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        return owners, sum(lengths)


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
