"""Numbers of torch.arange that Python would count in another way: downwards, as floats, of a flag, of a tensor."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, flag, n):
        dims = torch.arange(len(x.shape)).tolist()
        dims.append(0)
        first = torch.arange(flag).tolist()
        given = torch.arange(n).tolist()
        half = torch.arange(0, x.dim(), 0.5).tolist()
        try:
            down = torch.arange(3, x.dim()).tolist()
        except RuntimeError:
            down = [-1]
        return x + sum(dims) + len(first) + given[-1] + half[-1] + len(down)


# run
def make():
    return Net()


calls = [(torch.ones(2), True, torch.tensor(3)), (torch.ones(2, 2, 2, 2), 2, 2.5)]
