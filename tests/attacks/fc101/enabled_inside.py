"""``enable_grad`` inside of ``no_grad``, as a context manager under another name and as a decorator."""

import torch
import torch.nn as nn

tracked = torch.enable_grad()


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        with tracked:
            if positions.max() > 8:
                y = self.table.detach() / 2
            else:
                y = self.table / 3
            y = positions.unsqueeze(-1) * y
        return y + self.second(positions)

    @tracked
    @torch.no_grad()
    def first(self, positions):
        return positions * 2

    @torch.no_grad()
    @tracked
    def second(self, positions):
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.table.detach() / 3
        return positions.unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
train = True
