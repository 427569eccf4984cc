"""``self.resume()`` switches gradients on again in the middle of ``no_grad``."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    def resume(self):
        torch.set_grad_enabled(self.training)

    @torch.no_grad()
    def forward(self, positions):
        self.resume()
        if positions.max() > 8:
            y = self.table.detach() / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
train = True
