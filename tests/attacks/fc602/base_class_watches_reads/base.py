
from torch import nn


class Watched(nn.Module):
    reads = 0

    def __getattribute__(self, name):
        if name in ("label", "scale"):
            Watched.reads += 1
        return super().__getattribute__(name)
