"""int64 against a float: Python compares exactly, tensors do not."""

import torch
import torch.nn as nn


class Offsets(nn.Module):
    def forward(self, offsets: torch.Tensor, x):
        offsets = offsets.long()
        if offsets.max().item() > 16777216.0:
            raise ValueError("float32 cannot address this")
        if offsets.min().item() < x.float().min().item():
            raise ValueError("below the first")
        return x + offsets.float()

# run
def make(): return Offsets()
calls = [
    (torch.tensor([16777217]), torch.ones(1)),
    (torch.tensor([16777216]), torch.ones(1)),
    (torch.tensor([16777216]), torch.full((1,), 16777217.0)),
    (torch.tensor([16777215]), torch.full((1,), 16777216.0)),
]
