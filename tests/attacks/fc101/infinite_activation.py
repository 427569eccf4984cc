"""A score of minus infinity, as masks make them: not taken, and not finite in the other arm."""

import torch
import torch.nn as nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, scores, mask):
        scores = (scores * self.gain).masked_fill(mask, float("-inf"))
        if mask.any():
            weights = scores.softmax(-1)
        else:
            weights = scores * 0.5
        if scores.max() > 3:
            scale = weights.sigmoid() * 2
        else:
            scale = weights.sigmoid() * 3
        return scale

# run
def make(): return Scores()
calls = [(torch.arange(6.0).view(2, 3), torch.tensor(m)) for m in ([[True, False, False]] * 2, [[False] * 3] * 2)]
train = True
