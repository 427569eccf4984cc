"""Spelled as a method, as code does that is written for tensors and lists."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            if i + 1 < len(sizes):
                sizes.__setitem__(i + 1, torch.tensor([height, height]))
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [1, 4]]))]
