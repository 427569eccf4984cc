"""The quotient's name is tested for None and bound again."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def _frames(self, x, frames=None):
        if frames is None:
            frames = x.shape[-1] / self.stride
        if frames is not None:
            frames = torch.ceil(frames).to(torch.int64)
        return frames

    def forward(self, x):
        x = F.pad(x, (0, self._frames(x)))
        return self.conv(F.pad(x, (self.stride, 0)))

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, n),) for n in (7, 8)]
