"""The function that checks counts what it is asked, in the arm for numbers alone."""

import torch
from torch import nn

ASKED = []


def told(kind):
    ASKED.append(kind)
    return kind


def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check_with(told(ValueError), ok, lambda: message)


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        require(h[ids == 7].shape[0] == rows.shape[0], "rows must fit the places")
        low = h > 0
        mask = low.sum(dim=-1) > 1
        h[mask] = 1 - h[mask]
        return h * 2, len(ASKED)


# run
def make():
    return Rows()


calls = [(torch.tensor([[1, 7, 3], [7, 2, 2]]), torch.ones(2, 4)), (torch.tensor([[1, 7, 3]]), torch.ones(1, 4))]
