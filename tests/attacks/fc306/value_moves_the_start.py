"""The value is worked out first, and moves the position that the slice then begins at."""

import torch
from torch import nn


class Memory:
    def __init__(self):
        self.at = torch.zeros((), dtype=torch.long)
        self.rows = torch.zeros(9, 3)


class Keep(nn.Module):
    def stepped(self, x, memory):
        memory.at += 1
        return x * 2

    def forward(self, x, memory: Memory):
        memory.rows[memory.at : memory.at + 2] = self.stepped(x, memory)
        return memory.rows.clone()


# run
def make():
    return Keep()


def go(f):
    memory = Memory()
    return [f(torch.full((2, 3), float(i)), memory) for i in range(1, 6)]


calls = [go]
