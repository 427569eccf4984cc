"""numel counts all numbers of the rows that a mask picks, shape[0] and len the rows."""

import torch
from torch import nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        if h[slots].numel() != features.numel():
            raise ValueError(f"{h[slots].numel()} numbers, {features.numel()}")
        if len(h[slots]) != features.shape[0]:
            raise ValueError(f"{len(h[slots])} rows")
        if h[slots].shape[0] * 4 != features.numel():
            raise ValueError("rows")
        return h.masked_scatter(slots.unsqueeze(-1), features)


# run
def make():
    return Fit()


ids = torch.tensor([[1, 7, 3], [7, 7, 2]])
calls = [(ids, torch.ones(3, 4)), (ids, torch.ones(4, 4)), (ids, torch.ones(12)), (ids, torch.ones(6, 2)), (torch.tensor(7), torch.ones(1, 4)), (torch.tensor(1), torch.ones(0, 4)), (ids[:, :0], torch.ones(0, 4))]
