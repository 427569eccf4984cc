"""In each turn the tensor has the width of the turn before; ``else`` and ``continue`` on the way."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        width = torch.tensor(x.shape[1])
        for turn in range(3):
            if turn == 1:
                continue
            x = x[:, : width.item()]
            x = x[:, :-1] * 2
            if turn == 0:
                width = torch.tensor(x.shape[1])
        else:
            n = x.shape[1]
            t = torch.tensor(n)
            n -= 1
        return x[:, : t.item()], width.item()

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
