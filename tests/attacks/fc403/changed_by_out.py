"""The counts are worked on in place, by out=, by a foreach operator, and through numpy."""

import torch
from torch import nn


class Owners(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        repeats = torch.full((x.shape[0],), 2)
        if self.way == "out":
            torch.add(repeats, 1, out=repeats)
        elif self.way == "foreach":
            torch._foreach_mul_([repeats], 2)
        elif self.way == "numpy":
            repeats.numpy()[0] = 5
        elif self.way == "halves":
            repeats.chunk(2)[0].zero_()
        return x.repeat_interleave(repeats, dim=0)


# run
def make():
    return nn.ModuleList([Owners(way) for way in ("none", "out", "foreach", "numpy", "halves")])


x = torch.arange(4.0)
calls = [lambda m: [part(x) for part in m]]
