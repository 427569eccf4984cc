"""Single places that lie behind the end, or before the beginning: nothing is written, and nothing raises."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, kept, at: torch.Tensor):
        out = kept.clone()
        out[:, at : at + x.shape[1]] = x
        return out


# run
def make():
    return Keep()


calls = [(torch.ones(2, 1, 3), torch.zeros(2, 4, 3), torch.tensor(at)) for at in (3, 4, 9, -1, -4, -5, -9)]
calls += [(torch.ones(2, 1, 3), torch.zeros(2, 0, 3), torch.tensor(0))]
calls += [(torch.ones(2, 0, 3), torch.zeros(2, 4, 3), torch.tensor(at)) for at in (0, 4, 7, -9)]
calls += [(torch.ones(2, 2, 3), torch.zeros(2, 4, 3), torch.tensor(at)) for at in (0, 2, -4, -3)]
