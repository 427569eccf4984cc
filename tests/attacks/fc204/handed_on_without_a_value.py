"""A name has a value before the read on one way only, and gets one behind it on the other."""

import torch
from torch import nn


def window_starts(sizes: torch.Tensor, step: int = 2, *, ready: dict | None = None, empty: bool = False):
    if ready is not None and (starts := ready.pop("starts", None)) is not None:
        return starts
    if not empty:
        starts = []
        for size in sizes.tolist():
            starts += range(0, size, step)
    return torch.unique_consecutive(torch.tensor(starts))


class Windows(nn.Module):
    def ends(self, sizes):
        return torch.tensor([size + 1 for size in sizes.tolist()])

    def forward(self, x, sizes, ready=None):
        ends = self.ends(sizes)
        return (x * 2)[:, window_starts(sizes, ready=ready)].cos(), ends


# run
def make():
    return Windows()


calls = [
    (torch.ones(2, 12), torch.tensor([4, 3])),
    (torch.ones(2, 12), torch.tensor([2, 5])),
    lambda m: m(torch.ones(2, 12), torch.tensor([4, 3]), {"starts": torch.tensor([0, 1])}),
]
unsafe = True
