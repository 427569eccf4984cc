"""What was saved is loaded into the same wrapper, which another object holds under another name."""

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


class Holder:
    def __init__(self, model):
        self.inner = model

    def load(self, file):
        self.inner.load_state_dict(torch.load(file))


def script(x):
    net = Net()
    fast = torch.compile(net)
    file = io.BytesIO()
    torch.save(fast.state_dict(), file)
    holder = Holder(fast)
    file.seek(0)
    holder.inner.load_state_dict(torch.load(file))
    file.seek(0)
    holder.load(file)
    return holder.inner.eval()(x)

# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 8).view(4, 2),)]
