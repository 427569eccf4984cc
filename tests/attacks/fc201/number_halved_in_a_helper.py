"""``shrink`` changes the attribute that the number came from; the tensor has the old one."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width

    def shrink(self):
        self.width = self.width // 2

    def forward(self, x):
        width = torch.tensor(self.width, dtype=torch.int64)
        self.shrink()
        n = width.item()
        return x[:, :n] * 2

# run
def make(): return Net(8)
calls = [(torch.ones(2, 9),), (torch.ones(2, 9),)]
