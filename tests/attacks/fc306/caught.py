"""What does not fit raises, and is caught: there is something else to do then."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, kept, at: torch.Tensor):
        out = kept.clone()
        try:
            out[:, at : at + x.shape[1]] = x
        except RuntimeError:
            return out - 1
        return out


# run
def make():
    return Keep()


calls = [(torch.ones(2, 2, 3), torch.zeros(2, 4, 3), torch.tensor(at)) for at in (0, 2, 3, 4)]
