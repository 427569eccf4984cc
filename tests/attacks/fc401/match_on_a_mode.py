"""Each mode makes values of another rank, all of them are folded at the same places."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, mode: str = "plain"):
        low = x < 0
        match mode:
            case "plain":
                y = x * 2
            case "pair":
                y = torch.stack([x, x * 2], -1)
            case _:
                y = x.unsqueeze(-1).repeat(1, 1, 3)
        z = y.abs()
        y[low] = z[low]
        return y


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(3, 4), "pair"), (torch.randn(3, 3), "triple"), (torch.randn(2, 2), "pair")]
