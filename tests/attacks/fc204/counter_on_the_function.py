"""The function counts its calls in an attribute of its own, and one compares it with the base's."""

import torch
import torch.nn as nn


def positions(grid, merge):
    positions.calls += 1
    found = []
    for height, width in grid.tolist():
        rows = torch.arange(height).view(-1, 1).expand(-1, width)
        columns = torch.arange(width).view(1, -1).expand(height, -1)
        found.append(torch.stack([rows, columns], -1).reshape(-1, 2) // merge)
    return torch.cat(found), grid.max().item()


positions.calls = 0


class Vision(nn.Module):
    def places(self, grid):
        found = []
        for height, width in grid.tolist():
            found.append(torch.arange(height * width))
        return torch.cat(found) + grid.min().item()

    def forward(self, x, grid):
        places, longest = positions(grid, 2)
        own = type(self).places is Vision.places
        return places / longest, positions.calls, own, self.places.__name__, self.places(grid) + x.mean()

# run
def make(): return Vision()
calls = [(torch.ones(2), torch.tensor([[2, 3], [1, 4]])), (torch.ones(2), torch.tensor([[2, 3]]))]
unsafe = True
