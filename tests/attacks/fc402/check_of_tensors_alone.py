"""Numbers are only counted, and tensors checked: what takes both does not do the same with both."""

import torch
from torch import nn


COUNTED = []


def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        COUNTED.append(message)
        torch._check(ok, lambda: message)


class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids: torch.Tensor, features: torch.Tensor):
        h = self.embed(ids)
        require(h[ids == 7].numel() == features.numel(), "no fit")
        return h, len(COUNTED)


# run
def make():
    return Merge()


calls = [(torch.tensor([[7, 1, 7]]), torch.ones(2, 4))]
