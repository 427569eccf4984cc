"""The sizes are a buffer of a part; the part's ``step`` writes to it under the name that it has there."""

import torch
import torch.nn as nn


class Plan(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.tensor([[2, 3], [3, 4]]))

    def step(self):
        self.table[1] = self.table[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = Plan()

    def forward(self, x):
        sizes = self.plan.table
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            self.plan.step()
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
