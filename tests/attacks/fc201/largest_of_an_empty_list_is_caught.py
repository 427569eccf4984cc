"""The largest of nothing is an error of torch's, which the caller answers with an empty output."""

import torch
from torch import nn


class Pad(nn.Module):
    def longest(self, parts):
        rows = [part.relu() for part in parts]
        return torch.tensor([len(row) for row in rows]).max().item()

    def forward(self, *parts):
        try:
            longest = self.longest(parts)
        except RuntimeError:
            return torch.zeros(0, 3)
        return torch.stack([torch.cat([p, p.new_zeros(longest - p.shape[0], 3)]) for p in parts])


# run
def make():
    return Pad()


calls = [(torch.ones(2, 3), torch.ones(4, 3)), (), (torch.ones(1, 3),)]
