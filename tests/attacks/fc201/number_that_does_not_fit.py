"""A number that the tensor cannot hold is an error."""

import torch
from torch import nn


class Places(nn.Module):
    def __init__(self, most: int = 3):
        super().__init__()
        self.most = most

    def forward(self, x):
        width = torch.tensor([self.most], dtype=torch.int32)[0].item()
        return x[:, :width] * 2


# run
def make():
    return Places()


def far(model):
    model.most = 2**40
    return model(torch.ones(2, 5))


calls = [(torch.ones(2, 5),), far]
