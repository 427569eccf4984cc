from contextlib import suppress

import torch.nn as nn


class Smooth(nn.Module):
    """What a step cannot handle stays as it is."""

    def forward(self, x, step):
        with suppress(ValueError):
            x = step(x)
        return x + 1
