"""What float16 does not hold is an error, and stays one; what it does, is written."""

import torch
from torch import nn


class Close(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, scores):
        s = torch.relu(scores) * 1.0
        s[torch.where(s.sum(-1) == s.shape[-1] * 0)] = -1e9
        return s


# run
def make():
    return Close(-1e9)


calls = [(torch.zeros(2, 3),), (torch.zeros(2, 3).half(),), (torch.ones(2, 3).half(),), (torch.ones(2, 3),)]
