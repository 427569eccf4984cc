"""``left`` is the same memory as ``sizes``, under a view and a name."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        left = sizes.view(-1)
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            left.sub_(1)
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [3, 4]]))]
