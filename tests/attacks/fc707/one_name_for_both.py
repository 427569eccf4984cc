"""One function saves and loads both, and gets the wrapper from one call and the module from another."""

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


def save(model, file):
    torch.save({"model": model.state_dict()}, file)
    file.seek(0)


def load(model, file):
    state = torch.load(file)
    found = model.load_state_dict(state["model"], strict=True)
    return list(found.missing_keys)


def script(x):
    net = Net()
    fast = torch.compile(net)
    file, other = io.BytesIO(), io.BytesIO()
    save(fast, file)
    save(net, other)
    return load(fast, file), load(net, other), fast(x)


# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
