"""A function inside binds the name again, to a tensor, which is asserted as one."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        parts = [x, x + 1]

        def put_together():
            nonlocal parts
            parts = torch.stack(parts).sum()

        if x.dim() > 1:
            put_together()
        assert parts, "nothing is left"
        return x + 1


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2, 2),), (torch.zeros(2, 0),)]
