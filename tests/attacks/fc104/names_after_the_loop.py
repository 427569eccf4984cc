"""What the loop binds is read below it, in a comprehension, in an f-string, and after ``break``."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        height, width = 1, 1
        for i in range(sizes.shape[0]):
            row = sizes[i].tolist()
            height, width = row
            out[i, : height * width] = x[i].mean()
            if height > width:
                break
            row[0] = -1
        else:
            row = None
        return out.sin(), row, f"{height} {width} {i}", [row for _ in range(2)], sizes

# run
def make(): return Net()
calls = [(torch.ones(2, 3), torch.tensor(s)) for s in ([[2, 3], [3, 4]], [[4, 3], [3, 4]])]
