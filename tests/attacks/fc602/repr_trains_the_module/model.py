"""The whole module is shown, and a part of it sums up what it has seen when it is shown."""

import torch
from torch import nn

from parts import Seen


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = Seen()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        print("model:", self)
        print("part:", self.seen)
        return self.lin(x) * self.seen.shown


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2),)]
