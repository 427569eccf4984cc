"""``hasattr`` is a ``try``: a property that raises AttributeError says that there is no such thing."""

import torch
import torch.nn as nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(3)

    @property
    def prior(self):
        if (self.seen == 0).all():
            raise AttributeError("nothing was routed yet")
        return self.seen / self.seen.sum()

    def forward(self, x):
        if hasattr(self, "prior"):
            y = x * self.prior
        else:
            y = x / 3
        self.seen = self.seen + x.detach().abs()
        return y

# run
def make(): return Router()
calls = [(torch.ones(3),), (torch.ones(3),)]
