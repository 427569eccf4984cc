
from torch import nn

from model import same


class Compare(nn.Module):
    def forward(self, q, k):
        return same(q, k).float().mean(), same(q, k.shape[2])
