"""`dict` with a base class of the project, `sorted` imported under that name."""

import torch
from torch import nn


from functools import partial as sorted


class Net(nn.Module):
    def forward(self, x):
        parts = sorted(torch.add, x)
        assert parts, "nothing"
        y = parts(1)
        more = tuple()
        if x.dim() > 1:
            more = tuple([x])
        try:
            assert more
        except AssertionError as e:
            return y + len(str(e))
        return y * 2


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(2),), (torch.zeros(2, 2),)]
