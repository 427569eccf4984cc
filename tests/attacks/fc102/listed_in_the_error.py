"""A failed check is put into a list that the next call looks at."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.errors = []

    def forward(self, x):
        if (x < 0).any():
            worst = x.min().item()
            self.errors.append(worst)
            raise ValueError(f"negative: {worst}")
        return x * (len(self.errors) + 1)


# run
def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]
