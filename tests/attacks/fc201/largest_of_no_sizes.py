"""The largest of no sizes is an error; sizes whose product is beyond int64 wrap round."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x, repeat: int = 1):
        m = torch.tensor(x.shape).max().item()
        n = torch.tensor([repeat, x.shape[0]]).prod().item()
        return x * m, n

# run
def make(): return Net()
calls = [(torch.ones(2, 3),), (torch.ones(()),), (torch.ones(4), 2**62)]
