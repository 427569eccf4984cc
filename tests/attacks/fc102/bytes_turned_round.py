"""What ``any`` gives of a tensor of bytes is a byte: turned round by ``~`` it is true either way."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def padded(self, mask):
        assert not torch.any(mask), "padded"
        return mask.shape[0]

    def checked(self, mask):
        if mask.any():
            raise ValueError("padded")
        return mask.shape[0]

    def forward(self, x, mask, checks=True):
        return x * (self.checked(mask) if checks else self.padded(mask))

# run
def make(): return Net()
masks = [torch.tensor(m).to(d) for d in (torch.bool, torch.uint8, torch.int64, torch.float16) for m in ([0, 0], [0, 1], [1, 1])]
calls = [(torch.ones(2), m, checks) for m in masks for checks in (True, False)]
