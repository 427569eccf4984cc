"""``super()`` and a private name in a loop that may become a function of its own."""

import torch
import torch.nn as nn


class Base(nn.Module):
    def level(self, x, n):
        return x[:n].sum() * torch.ones(n).mean()


class Net(Base):
    def __init__(self):
        super().__init__()
        self.__scale = 3.0
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def level(self, x, n):
        return x[:n].mean()

    def forward(self, x, lengths):
        h = self.first(x)
        total = torch.zeros(())
        for row, length in zip(h, lengths):
            n = length.item()
            total = total + super().level(row, n) * self.__scale
            for _ in range(n):
                total = total * 1.5
        return self.last(h) * total

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([1, 3]))]
