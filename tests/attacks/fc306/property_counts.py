"""The start is a property that counts how often it is asked."""

import torch
from torch import nn


class Memory:
    def __init__(self):
        self.asked = torch.zeros((), dtype=torch.long)
        self.rows = torch.zeros(9, 3)

    @property
    def at(self) -> torch.Tensor:
        self.asked += 1
        return self.asked // 2


class Keep(nn.Module):
    def forward(self, x, memory: Memory):
        memory.rows[memory.at : memory.at + 1] = x
        return memory.rows.clone(), memory.asked.clone()


# run
def make():
    return Keep()


def go(f):
    memory = Memory()
    return [f(torch.full((1, 3), float(i)), memory) for i in range(1, 5)]


calls = [go]
