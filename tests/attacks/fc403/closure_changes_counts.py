"""A function in the function caps the lengths, in the list that it sees."""

import torch
from torch import nn


class Owners(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, parts):
        counts = [len(p) for p in parts]

        def capped():
            for i, n in enumerate(counts):
                counts[i] = min(n, self.most)
            return max(counts)

        repeats = torch.tensor(counts)
        marks = torch.arange(len(counts))
        top = capped()
        return torch.repeat_interleave(marks, repeats), top


# run
def make():
    return Owners(2)


calls = [([torch.ones(2), torch.ones(3)],)]
