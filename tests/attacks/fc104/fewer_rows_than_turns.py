"""The loop ends when there are no more rows: IndexError is how it finds out, and a negative index is the last row."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = []
        for i in range(x.shape[0]):
            try:
                height, width = sizes[i].tolist()
            except IndexError:
                break
            out.append(x[i, : height * width].sum())
        for i in range(2):
            height, width = sizes[i - 1].tolist()
            out.append(x[i, : height * width].sum())
        return torch.stack(out)

# run
def make(): return Net()
calls = [(torch.ones(4, 8), torch.tensor([[2, 3], [1, 4]]))]
