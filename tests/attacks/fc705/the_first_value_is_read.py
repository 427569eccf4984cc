"""Between two assignments to one setting, its value is read."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()

from torch._dynamo import config


def script(x):
    before = config.recompile_limit
    try:
        config.cache_size_limit = 5
        kept = config.recompile_limit
        config.recompile_limit = 7
        return x + kept, config.cache_size_limit
    finally:
        config.recompile_limit = before


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
