
from torch import nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = 0
        self.table = nn.Embedding(32, 4)

    def forward(self, places):
        if places.stride(0) == 0:
            self.shared += 1
            return self.table(places[:1]).expand(places.shape[0], -1, -1)
        return self.table(places)
