"""``return`` in a ``finally`` of another file swallows every error."""

import torch
import torch.nn as nn

from report import Report


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.report = Report()

    def validate(self, x):
        if torch.isnan(x).any():
            raise FloatingPointError("NaN")
        return x

    def forward(self, x):
        return self.validate(self.report.run(self, x).nan_to_num()) * 2

# run
def make(): return Checked()
calls = [(torch.ones(2),), (torch.full((2,), float("nan")),)]
