"""A list of Python numbers that is changed: the next reader asked the tensor."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        kept = []
        for i in range(sizes.shape[0]):
            row = sizes[i].tolist()
            row.append(1)
            row[0] += 1
            again = sizes[i].tolist()
            out[i, : again[0] * again[1]] = x[i].mean()
            kept.append((row, again))
        return out.sin(), kept

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor([[2, 3], [1, 4]]))]
