import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, size=2):
        parts = x.split(size)
        ends = torch.stack([p[-1] for p in parts])
        if (ends > 4).any():
            raise ValueError("too large a part")
        return ends.cumsum(0)
