"""`setattr` gives the module another number when the first call is done."""

import torch
from torch import nn


class Strided(nn.Module):
    def __init__(self, stride: int = 3):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride), persistent=False)

    def forward(self, x):
        x = nn.functional.pad(x, (0, int(self.stride)))
        setattr(self, "stride", self.stride + 1)
        return x


# run
def make():
    return Strided()


calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (6, 7, 8)]
