
from torch import nn


class Seen(nn.Module):
    shown = 0

    def extra_repr(self):
        self.shown += 1
        return f"shown={self.shown}"
