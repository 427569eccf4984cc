"""The mask is written later in a way that autograd does not see."""

import torch
import torch.nn as nn


class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        other = h * 3
        low = ids < 7
        h[low] = (2 * other[low] - h[low]) / 4  # in place
        low.data.fill_(1)
        return h, other


# run
def make():
    return Flip()


calls = [(torch.tensor(v),) for v in ([[7, 1, 7]], [[1, 1, 2]])]
train = True
