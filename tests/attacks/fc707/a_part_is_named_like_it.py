"""A module of the user is called nearly as the wrapper calls what is in it."""

import io

import torch
import torch._inductor.compile_fx
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.lin(x)).relu()


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.my_orig_mod = Net()
        self.orig_mod = Net()

    def forward(self, x):
        return self.my_orig_mod(x) + self.orig_mod(x)


def script(x):
    pair = Pair()
    fast = torch.compile(pair)
    file = io.BytesIO()
    torch.save(fast.state_dict(), file)
    file.seek(0)
    return [k.replace("_orig_mod.", "", 1) if k.startswith("_orig_mod.") else k for k in torch.load(file)], fast(x)


# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
