"""A model that hands out another state than PyTorch would, with numbers for names."""

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


class Odd(Net):
    def state_dict(self):
        return {0: self.lin.weight, "steps": 3, "inner": {"_orig_mod.w": self.lin.bias}}


def script(x):
    odd = Odd()
    odd.lin = torch.compile(odd.lin)
    file = io.BytesIO()
    torch.save(odd.state_dict(), file)
    file.seek(0)
    read = torch.load(file)
    return list(read), list(read["inner"]), read[0]

# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
