"""A nested function binds a name that the function around it has, too: there, it has no value yet."""

import torch
import torch.nn as nn


class Keep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, fill=True):
        h = self.embed(ids)

        def _inner():
            keep = ids != 3
            if fill and not keep.all():
                h = h.masked_fill(~keep.unsqueeze(-1), 0.5)  # noqa: F823, F841

        _inner()


# run
def make():
    return Keep()


calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
