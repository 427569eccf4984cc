"""The square in the gradient of a cube is beyond float16 for numbers that are not."""

import torch
import torch.nn as nn


class Cube(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3, bias=False)

    def forward(self, x):
        h = self.proj(x)
        if h.abs().max() < 8:
            y = h**3
        else:
            y = h * 3
        return y + 1

# run
def make():
    cube = Cube().half()
    with torch.no_grad():
        cube.proj.weight.copy_(torch.eye(3))
    return cube
calls = [(torch.full((2, 3), v).half(),) for v in (1.0, 300.0)]
train = True
