"""What is written to is not there unless something is set."""

import torch
from torch import nn


torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, y):
        on = (y > 1) & (y < 4)
        if on.any():
            self.cache[on] = y[on].cumsum(0)
        return y + 1


# run
unsafe = True


def make():
    return Net()


calls = [(torch.zeros(4),), (torch.ones(4),)]
