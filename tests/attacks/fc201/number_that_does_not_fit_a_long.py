"""A number that no tensor can hold is an error."""

import torch
from torch import nn


class Places(nn.Module):
    def forward(self, x, most=3):
        if type(most) is not int:
            return x
        width = torch.tensor(int(most)).item()
        return x[:, :width] * 2


# run
def make():
    return Places()


calls = [(torch.ones(2, 5),), (torch.ones(2, 5), 2), (torch.ones(2, 5), 2**70)]
