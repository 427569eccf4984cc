"""Another dtype on each side, a narrow position that wraps round, and views that see the write."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, kept, at: torch.Tensor):
        view = kept[:, 1:].transpose(0, 1)
        kept[:, at : at + x.shape[1]] = x
        return view.clone(), kept.dtype


# run
def make():
    return Keep()


calls = [
    (torch.full((2, n, 3), 2.7), torch.zeros(2, 300, 3, dtype=dtype), torch.tensor(at, dtype=kind))
    for n, at, kind in ((1, 255, torch.uint8), (1, 127, torch.int8), (2, 250, torch.uint8), (3, 5, torch.int16))
    for dtype in (torch.float64, torch.int32, torch.bfloat16)
]
