"""Of nothing and of a single number, how many are not zero."""

import torch
from torch import nn


def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        on = x > 0
        require(len(on.nonzero()) != 4, "four places")
        require(on.nonzero().shape[0] <= 3, "more than three")
        require(torch.nonzero(on).size(0) != 0, "none")
        require(len(torch.argwhere(on)) < 5, "more than four")
        return x * 2


# run
def make():
    return Net()


calls = [(torch.tensor(1.0),), (torch.tensor(-1.0),), (torch.zeros(0, 3),), (torch.ones(2),), (torch.ones(2, 2),), (torch.ones(1),)]
