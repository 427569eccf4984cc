"""A namespace that is made in the loop holds the tensor, which is written through it."""

import types

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        h = self.lin(x)
        for i in range(shapes.shape[0]):
            rows, turns = shapes[i].tolist()
            h = self.lin(h[:, :rows]).relu() if turns > 1 else h * 2
            fresh0 = types.SimpleNamespace(v=shapes)
            with torch.enable_grad():
                fresh0.v.fill_(1)
        return h


# run
def make():
    return Net()


calls = [(torch.arange(24.0).view(2, 4, 3), torch.tensor(s)) for s in ([[2, 3], [4, 1]], [[1, 2], [3, 2]])]
