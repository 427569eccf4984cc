"""Numbers of other calls, of sizes, of the module, of a float that changes."""

import torch
from torch import nn


import os
import re


def named(n: int) -> int:
    return len(os.path.basename("a" * n)) + int(os.path.exists("/" + "x" * n))


def scaled(f: float) -> float:
    found = list(re.finditer("a", "a" * int(f * 10)))
    return float(len(found)) + f


def told(name: str, *, at: int = 1) -> int:
    return len(list(re.finditer("a", name))) * at


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
        self.f = 0.5

    def forward(self, x, f, name):
        self.n += 1
        y = x + named(x.shape[0]) + named(self.n) + scaled(f) + scaled(self.f)
        self.f = self.f + 0.25
        return y + told(name, at=x.shape[0] + 1) + told(name="aab")


# run
unsafe = True
compiled = True


def make():
    return Net()


calls = [
    (torch.ones(2), 0.5, "a"),
    (torch.ones(3), 1.5, "aa"),
    (torch.ones(4), 2.5, "b"),
    (torch.ones(5), 3.5, "aaa"),
    (torch.ones(6), 3.5, "aaa"),
]
