"""The array is the tensor's memory."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        width = torch.tensor(x.shape[1])
        array = width.numpy()
        array //= 2
        return x[:, : width.item()] * 2

# run
def make(): return Net()
calls = [(torch.ones(2, 8),)]
