
from torch import nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 4)

    def forward(self, places):
        places[0] += 3
        return self.table(places)
