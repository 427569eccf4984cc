"""The caller's module keeps the tensor that it gave; its hook changes it between the turns."""

import torch
import torch.nn as nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = torch.tensor([[2, 3], [3, 4]])

    def forward(self, picture):
        self.sizes[1] = 1
        return picture * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.run(x, self.inner.sizes)

    def run(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = self.inner(x[i]).mean()
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
