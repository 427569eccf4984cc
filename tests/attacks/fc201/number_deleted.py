"""``n`` is gone when the number is read: the tensor still has it."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        t = torch.tensor(n)
        y = x * n
        del n
        return y[:, : t.item()] + 1

# run
def make(): return Net()
calls = [(torch.ones(2, 3),)]
