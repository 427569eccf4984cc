"""masked_select lets mask and values broadcast; each place that is picked counts as often as it is read."""

import torch
from torch import nn


def require(ok, message):
    if not ok:
        raise ValueError(message)


class Fit(nn.Module):
    def forward(self, x: torch.Tensor, features):
        h = x[...] * 2
        loud = h.sum(-1, keepdim=True) > 0
        require(torch.masked_select(h, loud).numel() == features.numel(), "no fit")
        return h, torch.masked_select(h.long(), loud).sum()


# run
def make():
    return Fit()


x = torch.tensor([[1.0, 2.0], [-3.0, 1.0], [2.0, 2.0]])
calls = [(x, torch.ones(2, 2)), (x, torch.ones(2)), (x[:, :1], torch.ones(2))]
