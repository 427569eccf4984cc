"""The labels are an expanded row, or share their memory with the mask, or are written by another mask."""

import torch
import torch.nn as nn


class Labels(nn.Module):
    def forward(self, labels):
        labels = labels.clone()
        padding = labels == 0
        if padding.any():
            labels[padding] = -100
        rows = labels.unsqueeze(0).expand(2, -1)
        ignored = rows == 7
        if ignored.any():
            rows[ignored] = -100
        flags = labels > 3
        if flags.any():
            flags[flags] = False
        return rows, flags

# run
def make(): return Labels()
calls = [(torch.tensor(v),) for v in ([0, 1, 2], [1, 2, 5], [0, 0, 0])]
