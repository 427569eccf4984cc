"""Where nothing is filled in, what was embedded stays what it was, gradients and all."""

import torch
from torch import nn


class Keep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        keep = ids != 3
        with torch.no_grad():
            if not keep.all():
                h = h.masked_fill(~keep.unsqueeze(-1), 0.5)
        return h * 2


# run
def make():
    return Keep()


calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),)]
train = True
