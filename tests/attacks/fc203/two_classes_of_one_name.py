"""Two classes below have one name: the second one sets the attribute."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Strided(nn.Module):
    def __init__(self, stride: int = 3):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride), persistent=False)

    def forward(self, x):
        length = x.shape[-1]
        n = (length - self.stride) / self.stride
        return x[..., : int(n) + 1]


class Sub(Strided):
    pass


class Sub(Strided):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stride = self.stride * 2

# run
def make(): return Strided()
calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (6, 7, 8)]

Strided = Sub

Strided = Sub
