"""A position that is made in inference mode is an error when it is moved on outside of it."""

import torch
from torch import nn


class Memory:
    def __init__(self, batch, room, size):
        self.rows = torch.zeros(batch, room, size)
        with torch.inference_mode():
            self.at = torch.zeros((), dtype=torch.long)

    def append(self, keys, held=False):
        n = self.at.item()
        self.rows[:, n : n + keys.shape[1]] = keys
        if not held:
            self.at += keys.shape[1]

    def read(self):
        return self.rows[:, : self.at.item()]


# run
class Net(nn.Module):
    def forward(self, x, memory, held):
        memory.append(x, held)
        return memory.read() * 2


def go(net, held):
    return net(torch.ones(2, 3, 4), Memory(2, 9, 4), held)


def make():
    return Net()


calls = [lambda net: go(net, True), lambda net: go(net, False)]
