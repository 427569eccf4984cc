"""Batches of none and rows of none."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = nn.Embedding(32, 4)

    def forward(self, x):
        rows, length = x.shape
        places = torch.arange(length, device=x.device).unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        return x.unsqueeze(-1) + self.rotary(places)


# run
def make():
    return Net()


train = True
calls = [(torch.ones(0, 3),), (torch.ones(2, 0),), (torch.ones(1, 1),), (torch.ones(3, 2),), (torch.ones(0, 0),)]
