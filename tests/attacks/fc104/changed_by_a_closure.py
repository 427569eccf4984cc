"""A nested function takes one from the rows that are still to come."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)

        def shorten(turn):
            sizes[turn + 1 :] -= 1

        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            shorten(i)
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(3, 3), torch.tensor([[2, 3], [3, 4], [4, 3]]))]
