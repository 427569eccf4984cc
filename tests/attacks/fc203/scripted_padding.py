"""TorchScript compiles the module; the new attribute has to be one that it knows."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride: int = 2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (int(self.stride), 0))
        return self.conv(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(Conv())

    def forward(self, x):
        return self.inner(x) * 2

# run
def make(): return Net()
calls = [(torch.ones(1, 2, 8),)]
