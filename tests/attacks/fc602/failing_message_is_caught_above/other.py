
from torch import nn

from model import Core


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Core()

    def forward(self, x):
        try:
            return self.core(x)
        except LookupError:
            return x - 1
