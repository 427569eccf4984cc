"""A part that asks for the version that the state was saved with, and gets an old one otherwise."""

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


class Versioned(Net):
    _version = 3

    def _load_from_state_dict(self, state, prefix, metadata, *others):
        self.seen = metadata.get("version")
        super()._load_from_state_dict(state, prefix, metadata, *others)


def script(x):
    net = Versioned()
    fast = torch.compile(net)
    file = io.BytesIO()
    torch.save({"model": fast.state_dict()}, file)
    file.seek(0)
    fast.load_state_dict(torch.load(file)["model"])
    return net.seen, fast.eval()(x)


# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
