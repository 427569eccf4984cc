"""The roots at places that the mask leaves out have no finite derivative; nothing of it reaches the inputs."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        y = x * 2
        ok = x > 0
        z = torch.sqrt(torch.relu(x))
        y[ok] = z[ok]
        return y


# run
def make():
    return Net()


train = True
calls = [(torch.tensor([[1.0, 2, 3, 4], [0.5, 1, 2, 3]]),), (torch.tensor([[1.0, 0.0, -1.0, 4]]),)]
