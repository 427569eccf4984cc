"""A NaN that is handed on passes where what is too large fails, and so does a limit that is none."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True


def _bounded(n, limit=8.0, most=float("nan")):
    if n > limit:
        raise ValueError("too long")
    if n > most:
        raise ValueError("more than none")
    return n


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.least = float("-inf")
        self.none = float("nan")

    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > self.none or n < self.least:
            raise ValueError("out of bounds")
        return x * _bounded(n) * _bounded(x.max().item()) * self._small(n)

    def _small(self, n, by=8.0):
        if n > by:
            raise ValueError("not small")
        return n

# run
nan = float("nan")
def make(): return Net()
calls = [(torch.tensor([a, 1.0]), torch.tensor([n, 1])) for a in (2.0, nan, 9.0) for n in (2, 9)]
compiled = True
