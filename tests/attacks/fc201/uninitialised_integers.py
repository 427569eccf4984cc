"""``IntTensor(2)`` has two elements of any value: they are filled below."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.width = width

    def forward(self, x):
        sizes = torch.LongTensor(self.width)
        sizes.fill_(3)
        one = torch.LongTensor([self.width, 5])
        return x[:, : sizes[0]], x[:, one[0] : one[1]], x[:, : one[-1]]

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
