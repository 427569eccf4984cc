"""The buffer is registered again as a part of the state dict; what forward assigns takes it out."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0), persistent=False)
        self.register_buffer("table", self.table, persistent=True)

    def forward(self, x):
        self.table = self.table.to(x.dtype)
        return x + self.table


# run
def make():
    return Net()


calls = [(torch.ones(4),), lambda m: list(m.state_dict())]
