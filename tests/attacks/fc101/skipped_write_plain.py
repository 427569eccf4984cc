"""The plain case: labels, written through their own mask."""

import torch
import torch.nn as nn


class Labels(nn.Module):
    def forward(self, labels):
        labels = labels.clone()
        padding = labels == 0
        if padding.any():
            labels[padding] = -100
        return labels * 2

# run
def make(): return Labels()
calls = [(torch.tensor([0, 1, 2]),), (torch.tensor([1, 2]),)]
