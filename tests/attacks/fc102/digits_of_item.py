"""A float32 number against a Python number that float32 does not have."""

import torch
import torch.nn as nn


class Rate(nn.Module):
    def forward(self, x, rate):
        rate = rate.to(torch.float32)
        if rate.item() == 0.1:
            raise ValueError("the default rate is not to be used")
        if x.to(torch.float16).max().item() > 65519.5:
            raise ValueError("too large")
        return x * rate

# run
def make(): return Rate()
calls = [(torch.ones(2), torch.tensor(0.1)), (torch.ones(2), torch.tensor(0.2)), (torch.full((2,), 65504.0), torch.tensor(0.5))]
