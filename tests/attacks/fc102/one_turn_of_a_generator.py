"""The consumer takes what it needs; the turns after that are never checked."""

import torch
import torch.nn as nn


class Beam(nn.Module):
    def candidates(self, scores):
        for row in scores:
            if (row <= 0).any():
                raise ValueError("no probability")
            yield row.log()

    def forward(self, scores):
        found = []
        for row in self.candidates(scores):
            found.append(row)
            if len(found) == 2:
                break
        return torch.stack(found)

# run
def make(): return Beam()
calls = [(torch.tensor([[0.5], [0.2], [0.0]]),), (torch.tensor([[0.5], [0.0], [0.1]]),)]
