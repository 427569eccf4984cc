"""The mask has fewer rows than there are weights, or another number than tokens: what was an error stays one.

Fewer rows than tokens are an assumption of the fix.
"""

import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, count: int = 3):
        super().__init__()
        self.count = count
        self.up = nn.ModuleList([nn.Linear(4, 4) for _ in range(count)])

    def forward(self, x, chosen, weights):
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=self.count).permute(2, 1, 0)
        for expert in range(self.count):
            place, token = torch.where(mask[expert])
            if token.numel() == 0:
                continue
            y = self.up[expert](x[token])
            y = y * weights[token, place, None]
            out.index_add_(0, token, y)
        return out


# run
def make():
    return Experts()


unsafe = True
tolerance = 1e-5
chosen = torch.tensor([[0, 1], [2, 1], [0, 2]])
weights = torch.rand(3, 2)
calls = [(torch.randn(3, 4), chosen, weights), (torch.randn(2, 4), chosen, weights), (torch.randn(3, 4), chosen, torch.rand(2, 2))]
