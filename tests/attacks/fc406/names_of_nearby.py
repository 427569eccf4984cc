"""The name of the limit is the parameter of a nested function; a default argument."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, ids, w: int = 3):
        def rows(i, m=max(ids.max() + 1, w)):
            return F.one_hot(i, m)[..., :w]

        m = max(ids.max() + 1, w)
        yielded = (F.one_hot(ids, m)[..., :w] for ids in (ids, ids // 2))
        return rows(ids), torch.cat(list(yielded))


# run
def make():
    return Net()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),), (torch.tensor([0, -5]),)]
