
from torch import nn


class Lightning(nn.Module):
    def __init__(self):
        super().__init__()
        self.metrics = []
        self.printed = 0

    def log(self, name, value):
        self.metrics.append((name, float(value)))

    def print(self, *args):
        self.printed += 1
