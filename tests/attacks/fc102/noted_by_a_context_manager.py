"""A context manager that notes the error still does, also one that a caller has entered."""

import torch
import torch.nn as nn


class Watch:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        return self
    def __exit__(self, kind, error, tb):
        self.log.append(str(kind))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = []
        self.count = 0

    def forward(self, x: torch.Tensor):
        with Watch(self.log):
            return self.look(x)

    def look(self, x: torch.Tensor):
        if (x > 5).any():
            raise ValueError("long")
        return x * 2

# run
def make(): return Net()
def state(m): return m.log, m.count
calls = [(torch.ones(3) * n,) for n in (3, 11, 4, 15)]
compiled = True
