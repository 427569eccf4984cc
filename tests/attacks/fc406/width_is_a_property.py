"""The limit counts how often it is asked."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.asked = 1

    @property
    def width(self):
        self.asked += 1
        return self.asked

    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, self.width))[..., : self.width]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 3

    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, self.width))[..., : self.width]


class Own(Base):
    def __getattribute__(self, name):
        if name == "width":
            torch.seen = getattr(torch, "seen", 0) + 1
            return torch.seen
        return super().__getattribute__(name)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.base = Base()

    def forward(self, ids):
        return self.net(ids).sum() + self.base(ids).sum(), self.net.asked


# run
def make():
    return Both()


calls = [(torch.tensor([0, 1]),), (torch.tensor([0, 5]),)]
