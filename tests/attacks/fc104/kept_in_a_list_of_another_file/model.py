"""``track`` of another file keeps the tensor in a list of its module; ``advance`` writes to all of them."""

import torch
import torch.nn as nn

from tracking import advance, track


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        track(sizes)
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            advance()
        return out.sin()

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [3, 4]]))]
