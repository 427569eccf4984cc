"""The quotient's name is tested for None and bound again, in the way of the plain case."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, kernel_size=3, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel_size, stride)
        stride = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        self.register_buffer("hop", stride, persistent=False)

    def _extra(self, x):
        length = x.shape[-1]
        frames = length / self.hop + 1
        if frames is not None:
            frames = torch.ceil(frames).to(torch.int64) - 1
        return frames * self.hop - length

    def _more(self, x, frames=None):
        if frames is None:
            frames = x.shape[-1] / self.hop
        frames = torch.ceil(frames).to(torch.int64)
        if frames is not None:
            frames = frames * self.hop
        return frames

    def forward(self, x):
        x = F.pad(x, (0, self._extra(x)))
        return self.conv(F.pad(x, (self.hop, self._more(x))))

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, n),) for n in (7, 8)]
