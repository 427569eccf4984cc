"""What the loop counts changes the sizes that its turns read, in place."""

import torch
import torch.nn as nn


def grown(sizes):
    sizes.add_(1)
    return sizes.shape[0]


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        once, twice = sizes.abs(), sizes.abs()
        for i in range(once.add_(1).shape[0]):
            height, width = once[i].tolist()
            out[i, : height * width] += x[i].mean()
        for i in range(grown(twice)):
            height, width = twice[i].tolist()
            out[i, : height * width] += x[i].mean()
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 2], [1, 2]]))]
