"""The array shares its memory with the tensor."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        table = sizes.numpy()
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            table[i + 1 :] = 1
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [1, 4]]))]
