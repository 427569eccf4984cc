"""Saved by the file itself, above the functions that it defines and below those that it calls."""

import io

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.lin(x)).relu()


def saved(model, file):
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


plain = Net()
fast = torch.compile(plain)
FILE = saved(fast, io.BytesIO())
OTHER = io.BytesIO()
torch.save(fast.state_dict(), OTHER)
OTHER.seek(0)


def script(x):
    FILE.seek(0), OTHER.seek(0)
    fast.load_state_dict(torch.load(FILE))
    fast.load_state_dict(torch.load(OTHER))
    return fast(x).shape


# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
