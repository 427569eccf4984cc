"""A weight is written to, where any is set."""

import torch
from torch import nn


torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    def forward(self, y):
        on = y > 1
        if on.any():
            self.table[on] = y[on].cumsum(0)
        return (y * self.table).sum()


# run
unsafe = True
train = True


def make():
    return Net()


calls = [(torch.zeros(4),), (torch.ones(4) * 2,)]
