"""The message shows a random number: the generator is one further afterwards."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        print("a sample", torch.rand(1).item(), x.shape)
        print("another", F.dropout(x, 0.5).sum().item())
        return x + torch.rand(3)


# run
def make():
    return Net()


calls = [(torch.ones(3),)]
