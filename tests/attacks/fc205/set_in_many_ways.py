"""The flag is set in loops, by parents, in a with, by what it was, and loaded with assign."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, started=None):
        super().__init__()
        self.register_buffer("ready", torch.tensor([started is not None]))
        self.register_buffer("scale", torch.ones(2))

    def start(self, x):
        if bool(self.ready.item()):
            return
        with torch.no_grad():
            self.scale.copy_(x[0])
            self.ready.data.copy_(torch.tensor([True]))

    def stop(self, x):
        for row in x:
            if not self.ready:
                continue
            self.ready.fill_(row is None)

    def forward(self, x):
        self.start(x)
        y = x * self.scale if self.ready.any() else x
        self.stop(x)
        return y


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Net()
        self.two = Net(1)

    def forward(self, x):
        y = self.one(x) + self.two(x)
        self.two.load_state_dict(self.one.state_dict(), assign=True)
        z = self.two(x)
        self.two.load_state_dict({"scale": torch.zeros(2)}, strict=False)
        return y, z, self.two(x), self.one.ready, self.two.ready


# run
unsafe = True


def make():
    return Both()


calls = [(torch.ones(2, 2),), (torch.ones(2, 2) * 3,)]
