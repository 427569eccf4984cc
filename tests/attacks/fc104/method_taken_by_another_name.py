"""Another class takes a method by another name of its class."""

import types

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor):
        parts = torch.split(self.lin(x), lengths.tolist())
        return torch.cat([part - part.mean(0) for part in parts])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x, lengths):
        x = self.norm(x * 2) + self.norm(x)
        for block in self.blocks:
            x = x + block(x, lengths)
        return self.norm(x).tanh()


class Other(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.norm = Norm()
        self.blocks = blocks

    def forward(self, x, lengths):
        return x


def by_another_name(tower, made):
    kind = Tower
    made.forward = types.MethodType(kind.forward, made)


def build():
    tower = Tower()
    made = Other(tower.blocks)
    by_another_name(tower, made)
    return made

# run
def make(): return build()
calls = [(torch.ones(5, 4), torch.tensor(n)) for n in ([2, 3], [1, 4])]
