"""The list is that of the turn before for the tensor, and changed for the next one at the end."""

import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        out = []
        repeats = torch.tensor(counts)
        for _ in range(2):
            out.append(torch.repeat_interleave(torch.arange(len(counts)), repeats))
            counts.__setitem__(-1, 0)
            counts[0] = counts[0] + 1
        return out


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
