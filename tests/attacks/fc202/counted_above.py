"""A counter is set before sizes that do not add up: whoever takes the error sees that."""

import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
    def forward(self, x, ids: torch.LongTensor):
        self.count += 1
        counts = (ids != 0).sum(1)
        x = x.relu()
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float() for p in parts], dim=0)
        return rows * 2

# run
compiled = True
def make(): return Net()
ids = torch.tensor([[1, 0, 2], [1, 1, 1]])
calls = [(torch.ones(5, 2), ids), (torch.ones(4, 2), ids), (torch.ones(5, 2), ids)]
