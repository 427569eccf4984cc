"""A function that calls itself, and a nested one that counts in the function around it."""

import torch
import torch.nn as nn


def halves(sizes, depth=0):
    lengths = sizes.tolist()
    top = sizes.max().item()
    if top < 2:
        return [lengths]
    return [lengths, *halves(sizes // 2, depth + 1)]


class Vision(nn.Module):
    def positions(self, grid):
        count = 0

        def place(n):
            nonlocal count
            count += 1
            return torch.arange(n)

        found = [place(n) for n in grid.sum(-1).tolist()]
        longest = grid.max().item()
        return torch.cat(found) + longest, count

    def forward(self, grid):
        return self.positions(grid), halves(grid[:, 0])

# run
def make(): return Vision()
calls = [(torch.tensor([[2, 3], [5, 4]]),)]
