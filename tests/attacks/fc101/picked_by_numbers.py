"""What picks holds numbers, and zero is one of them."""

import torch
from torch import nn


torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def forward(self, x, y, on):
        out = torch.zeros_like(x)
        if on.any():
            out[on] = y[on].cumsum(0)
        return out


# run
unsafe = True


def make():
    return Net()


calls = [
    (torch.ones(2, 2), torch.ones(2, 2), torch.tensor([0, 0])),
    (torch.ones(2, 2), torch.ones(2, 2), torch.tensor([0, 1])),
    (torch.ones(2, 2), torch.ones(2, 2), torch.tensor([False, False])),
]
