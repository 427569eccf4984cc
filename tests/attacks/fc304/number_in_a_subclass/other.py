
from torch import nn

from model import Net


class Light(Net):
    def __init__(self):
        nn.Module.__init__(self)
        self.steps = 0
