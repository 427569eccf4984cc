"""The module has an `isinstance` of its own: what is a tensor for it is not known."""

import torch
from torch import nn


def isinstance(value, kind):
    return False


def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._check_tensor_all(ok, lambda: message)
    else:
        torch._check(ok, lambda: message)


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        count = h[ids == 7].shape[0]
        require(count == rows.shape[0], "rows must fit the places")
        return h


# run
def make():
    return Rows()


calls = [(torch.tensor([[7, 1, 7]]), torch.ones(2, 4)), (torch.tensor([[1, 1, 7]]), torch.ones(1, 4))]
