
from torch import nn

from model import Ids


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ids = Ids()

    def forward(self, x):
        places = self.ids(x)
        places[0].mul_(2)
        return x + places
