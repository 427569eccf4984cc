"""What float16 does not hold is an error where there is something to fill, and only there."""

import torch
from torch import nn


class Blocks(nn.Module):
    def __init__(self, value: float = -1e9):
        super().__init__()
        self.value = value

    def forward(self, x, bounds: torch.Tensor):
        n = x.shape[0]
        mask = torch.zeros(1, n, n, dtype=x.dtype, device=x.device)
        for i in range(1, len(bounds)):
            mask[..., bounds[i - 1] : bounds[i], bounds[i - 1] : bounds[i]] = -1e9
        return x @ x.T + mask


# run
def make():
    return Blocks()


bounds = torch.tensor([0, 2, 5])
x = torch.randn(5, 3)
calls = [(x, bounds), (x.half(), bounds), (x.half(), bounds[:1]), (x.half(), torch.tensor([2, 2, 2])), (x.half(), torch.tensor([3, 1])), (x.bfloat16(), bounds)]
