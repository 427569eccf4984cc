"""``limit`` and ``x`` are annotated as tensors; a scalar loss comes in as a Python float."""

import torch
import torch.nn as nn


class Watch(nn.Module):
    def forward(self, x: torch.Tensor, loss: torch.Tensor, limit: torch.Tensor):
        if loss > limit:
            raise RuntimeError(f"diverged: {loss}")
        return x / (1 + limit)

# run
def make(): return Watch()
calls = [
    (torch.ones(2), 0.5, 1.0),
    (torch.ones(2), torch.tensor(0.5), torch.tensor(1.0)),
    (torch.ones(2), 2.0, 1.0),
    (torch.ones(2), torch.tensor(2.0), 1.0),
]
