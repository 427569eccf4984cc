import torch.nn as nn


class Head(nn.Module):
    """A model of the package of the tuner's own."""

    def forward(self, x):
        return x.relu()
