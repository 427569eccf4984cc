"""The constructor changes the number after it made the buffer, in a method and by a helper of another base."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Doubling:
    def finish(self):
        for name, buffer in list(self._buffers.items()):
            self._buffers[name] = buffer * 2


class Conv(nn.Module, Doubling):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)
        self.finish()

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
def make(): return Conv()
calls = [(torch.ones(1, 2, 8),)]
