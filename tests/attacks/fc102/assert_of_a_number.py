"""``mask`` is annotated as a tensor; an old caller gives True for "everything"."""

import torch
import torch.nn as nn


class Masked(nn.Module):
    def forward(self, x, ratio: torch.Tensor, total: torch.Tensor):
        assert ratio <= 1, f"a ratio of {ratio}"
        assert 0 < total, f"nothing left of {x.shape}"
        return x * ratio / total

# run
def make(): return Masked()
calls = [(torch.ones(2), 0.5, 2), (torch.ones(2), torch.tensor(0.5), torch.tensor(2)), (torch.ones(2), 1.5, 2)]
