"""What is complex has no order: the second test is made only where the first one holds."""

import torch
import torch.nn as nn


class Together(nn.Module):
    def forward(self, x, y):
        y = y.to(torch.complex64)
        if self.training and (x > 2).any() and (y < 0).any():
            raise ValueError("both")


# run
def make():
    return Together().train()


calls = [(torch.ones(2) * a, torch.ones(2) * b) for a, b in ((1, 1), (3, 1), (1, -1), (3, -1))]
