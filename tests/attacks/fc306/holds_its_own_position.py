"""The tensor that is written first holds the position: the second write begins elsewhere."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, state):
        state, other = state.clone(), torch.zeros(3, 6, dtype=torch.long)
        start = state[0, 0]
        end = start + 1
        state[:, start:end] = x
        other[:, start:end] = x
        return state, other


# run
def make():
    return Keep()


calls = [(torch.full((3, 1), v), torch.zeros(3, 6, dtype=torch.long)) for v in (0, 1, 2, -1)]
