"""Where compiling is disabled, nothing is rejected."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


def script(x, disabled=True):
    run = torch.compile(Net(), dynamic="auto", backend="eager", disable=disabled)
    return run(x)


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
