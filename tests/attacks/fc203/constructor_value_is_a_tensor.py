"""The constructor is given a tensor that its caller changes later; ``torch.tensor`` copies, ``as_tensor`` does not."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=2, kernel=3):
        super().__init__()
        self.register_buffer("stride", torch.as_tensor(stride, dtype=torch.int64), persistent=False)
        self.register_buffer("kernel", torch.tensor(kernel, dtype=torch.int64), persistent=False)

    def forward(self, x):
        return F.pad(x, (self.stride, self.kernel))

# run
shared = torch.tensor(2)
def make(): return Conv(shared, 3.7)
def after(conv):
    shared.fill_(5)
    return conv(torch.ones(1, 2, 8))
calls = [(torch.ones(1, 2, 8),), after]
