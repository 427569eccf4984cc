"""A subclass sets the flag anew, and registers it with another value."""

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if self.ready:
            return x * 2
        return x


class Below(Base):
    def __init__(self):
        super().__init__()
        self.ready.fill_(True)


# run
unsafe = True


def make():
    return Below()


calls = [(torch.ones(3),)]
