"""Context managers of the project that only hand on those of torch note no error."""
import contextlib

import torch
import torch.nn as nn


@contextlib.contextmanager
def half(on):
    with torch.autocast("cpu", enabled=on):
        yield


class Net(nn.Module):
    def casting(self):
        if self.training:
            return torch.autocast("cpu", enabled=False)
        return contextlib.nullcontext()

    def forward(self, x: torch.Tensor):
        with torch.no_grad(), half(False):
            self.look(x)
        with self.casting():
            return self.look(x)

    def look(self, x: torch.Tensor):
        if (x > 5).any():
            raise ValueError("long")
        return x * 2

# run
def make(): return Net()
calls = [(torch.ones(3) * n,) for n in (3, 11, 4, 15)]
compiled = True
