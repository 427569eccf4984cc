"""Another name of the same list gets one more in between; the sum is that of the tensor."""

import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        same = counts
        repeats = torch.tensor(counts)
        marks = torch.arange(len(counts))
        same[0] += 4
        return torch.repeat_interleave(marks, repeats), counts


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
