"""``except ... as n`` deletes the name; a name of ``with`` and of ``for`` is another value."""

import contextlib

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        t = torch.tensor(n)
        try:
            x = x.view(7, -1)
        except RuntimeError as n:
            y = x * len(str(n) and "ab")
        m = x.shape[0]
        s = torch.tensor(m)
        with contextlib.nullcontext(7) as m:
            y = y + m
        return y[: s.item(), : t.item()] + 1

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
