"""A function in the function makes the end another one, so that the value does not fit, or is broadcast."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, at: torch.Tensor):
        out = torch.zeros(8, 3)
        end = at + 1

        def further():
            nonlocal end
            end = end + 2

        further()
        out[at:end] = x
        return out


# run
def make():
    return Keep()


calls = [(torch.ones(1, 3), torch.tensor(at)) for at in (0, 2, 6)]
