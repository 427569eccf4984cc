"""The buffer is filled by a function of the file that `map` calls for it."""

import torch
from torch import nn


def clear(value):
    value.fill_(1)


class Window(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self.register_buffer("window", torch.tensor(window, dtype=torch.long), persistent=False)
        list(map(clear, [self.window]))

    def forward(self, x):
        return nn.functional.pad(x, (0, int(self.window)))


# run
def make():
    return Window(3)


calls = [(torch.linspace(-1, 1, n).reshape(1, n),) for n in (8, 9)]
