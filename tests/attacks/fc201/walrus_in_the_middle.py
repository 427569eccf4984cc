"""The walrus gives the name another value between the tensor and its number."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        t = torch.tensor(n)
        if (n := n // 2) > 1:
            x = x * n
        rows = [n := n + 1 for _ in range(3)]
        return x[:, : t.item()], rows

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
