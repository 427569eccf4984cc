"""Names that patterns and expressions bind."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, y):
        parts = [x]
        if (parts := y) is None:
            parts = [x, x]
        assert parts, "m"
        match y:
            case [*rest]:
                kept = rest
            case kept:
                pass
        assert kept, "n"
        first, *others = (x, y)
        assert others, "o"
        for parts in (others, y):
            assert parts, "p"
        return x + 1


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(2), torch.ones(1)), (torch.ones(2), None), (torch.ones(2), torch.zeros(1)), (torch.ones(2), [])]
