
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.reads = 0

    def keep(self, x):
        self._kept = x * 2

    @property
    def hidden(self):
        self.reads += 1
        if self.reads > 2:
            self._kept = self._kept.clone()
        return self._kept
