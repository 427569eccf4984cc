"""Keywords are handed in under the name."""

import torch
from torch import nn


class Net(nn.Module):
    def run(self, x, *args, **len):
        assert args, "nothing"
        assert len, "no names"
        return x + sum(len.values())

    def forward(self, x):
        return self.run(x, 1, a=x)


# run
def make():
    return Net()


calls = [(torch.ones(2),)]
