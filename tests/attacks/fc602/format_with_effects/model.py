"""The object formats itself lazily: it loads its table when it is shown for the first time."""

import torch
from torch import nn

from table import Table


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table()

    def forward(self, x, table=None):
        t = table or self.table
        print(f"table {t:>8}")
        return x * len(t.rows)


# run
def make():
    return Net()


calls = [(torch.ones(3),)]
