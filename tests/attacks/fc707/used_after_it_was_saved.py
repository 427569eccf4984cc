"""The dictionary that is saved is what the wrapper is loaded from when training goes wrong."""

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


def script(x):
    net = Net()
    fast = torch.compile(net)
    best = {"model": fast.state_dict(), "loss": 0.5}
    torch.save(best, io.BytesIO())
    fast(x)
    fast.load_state_dict(best["model"])
    state = fast.state_dict()
    torch.save(state, io.BytesIO())
    fast.load_state_dict(state)
    return fast.eval()(x), best["loss"]

# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
