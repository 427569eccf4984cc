"""Which of the drawn numbers is compared is found by what must happen at a rate of zero as well."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.drop = drop
        self.order = [2, 1, 0, 1, 2, 0, 1, 0]

    def forward(self, x):
        if torch.rand(4)[torch.randint(4, ())] < self.drop:
            return x
        if torch.rand(4)[self.any_of_four()] < self.drop:
            return x
        probs = torch.rand(5)
        if probs[self.order.pop()] < self.drop:
            return x
        n = 0
        for _ in range(3):
            if probs[(n := n + 1)] >= self.drop:
                x = x + n
        return x + len(self.order) + torch.rand(3)

    def any_of_four(self):
        return int(torch.randint(4, ()))


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),)]
