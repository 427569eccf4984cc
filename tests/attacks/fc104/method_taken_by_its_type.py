"""The method of an object's type is bound to an object of another class."""

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


def by_its_type(tower, made):
    made.forward = type(tower).forward.__get__(made)


def build():
    tower = Tower()
    made = Other(tower.blocks)
    by_its_type(tower, made)
    return made

# run
def make(): return build()
calls = [(torch.ones(5, 4), torch.tensor(n)) for n in ([2, 3], [1, 4])]
