"""``item()`` of a flag is a bool, of a float that float32 does not have another number."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, flag=True, rate=0.1, width=3):
        super().__init__()
        self.flag = flag
        self.rate = rate
        self.width = width

    def forward(self, x):
        flag = torch.tensor(self.flag).item()
        rate = torch.tensor(self.rate).item()
        width = torch.tensor(self.width, dtype=torch.float16).item() + torch.tensor(self.flag, dtype=torch.int64).item()
        return x * rate, flag, rate, width, x[: torch.tensor(self.flag)]

# run
def make(): return Net(1 > 0, 0.1, 2049)
calls = [(torch.ones(2, 3),)]
