"""A memory of the last frames in an object that comes with the call: a ring, written at a place that advances."""

import torch
from torch import nn


class Memory:
    def __init__(self, frames, batch, width, device):
        self.frames = torch.zeros(frames, batch, width, device=device)
        self.place = 0

    def put(self, frame):
        n = self.place % self.frames.shape[0]
        self.frames[n : n + 1] = frame[None]
        self.place += 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)

    def forward(self, x, memory: Memory):
        memory.put(self.line(x))
        return x + memory.frames.mean(0)


def loop(net, xs):
    memory = Memory(5, 4, 64, xs[0].device)
    return [net(x, memory).clone() for x in xs]
