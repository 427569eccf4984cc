"""A value that does not fit is an error where something is written, and none where nothing is."""

import torch
import torch.nn as nn


class Labels(nn.Module):
    def forward(self, labels, values):
        labels = labels.clone()
        padding = labels == 0
        if padding.any():
            labels[padding] = values
        other = labels == -1
        if other.any():
            labels[other] = 5
        return labels

# run
def make(): return Labels()
calls = [
    (torch.tensor([0, 1, 0]), torch.tensor([7, 8])),
    (torch.tensor([1, 1, 1]), torch.tensor([7, 8])),
    (torch.tensor([1, -1, 1]), "none"),
    (torch.tensor([1, 1, 1]), 2.5),
]
