"""``scale`` is annotated as a tensor, and every caller of the old interface hands in a float."""

import torch
import torch.nn as nn


class Rescale(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        # shrink only what is too large
        if scale > 1:
            y = x / 2
        else:
            y = x * 1.0
        return y

# run
def make(): return Rescale()
calls = [(torch.ones(2, 3), 0.5), (torch.ones(2, 3), 4.0), (torch.ones(2, 3), torch.tensor(4.0))]
