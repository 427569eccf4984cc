from contextlib import ExitStack

import torch.nn as nn


class Robust(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.failed = 0

    def note(self, kind, error, trace):
        self.failed += isinstance(error, ValueError)
        return isinstance(error, ValueError)

    def forward(self, x):
        with ExitStack() as stack:
            stack.push(self.note)
            x = self.layer(x)
        return x
