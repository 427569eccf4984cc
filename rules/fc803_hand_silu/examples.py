"""What HandSilu reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a module that is nothing else",
        before="""\
class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)  # swish
""",
        after="""\
class Swish(nn.Module):
    def forward(self, x):
        return F.silu(x)  # swish
""",
        run="""\
def make(): return Swish()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="as a method, the gate first",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(h.sigmoid() * h)
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.silu(h))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="the gate has a name",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        gate = torch.sigmoid(h)
        return self.out(h * gate)
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.silu(h))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a gated feed-forward layer",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        gate = self.gate(x)
        return self.out(gate * torch.sigmoid(gate) * self.fc(x))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        gate = self.gate(x)
        return self.out(F.silu(gate) * self.fc(x))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a module for the gate",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)
        self.act = nn.Sigmoid()

    def forward(self, x):
        h = self.fc(x)
        return self.out(torch.mul(h, self.act(h)))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)
        self.act = nn.Sigmoid()

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.silu(h))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a method that forward calls",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return self.out(self.nonlinearity(self.fc(x)))

    def nonlinearity(self, x):
        # swish
        return x * torch.sigmoid(x)
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return self.out(self.nonlinearity(self.fc(x)))

    def nonlinearity(self, x):
        # swish
        return F.silu(x)
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="in one arm of a choice",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)
        self.inplace = False

    def forward(self, x):
        h = self.fc(x)
        return self.out(h.mul_(h.sigmoid()) if self.inplace else h.mul(h.sigmoid()))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)
        self.inplace = False

    def forward(self, x):
        h = self.fc(x)
        return self.out(h.mul_(h.sigmoid()) if self.inplace else F.silu(h))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a scaled gate is another function",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)
""",
    ),
    NearMiss(
        title="a gate with weights of its own",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)
""",
    ),
    NearMiss(
        title="the gate of something else",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return x * torch.sigmoid(self.gate(x))
""",
    ),
    NearMiss(
        title="two halves",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return a * torch.sigmoid(b)
""",
    ),
    NearMiss(
        title="in place",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return h.mul_(torch.sigmoid(h))
""",
    ),
    NearMiss(
        title="x is another one by then",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        gate = torch.sigmoid(x)
        x = self.fc(x)
        return x * gate
""",
    ),
    NearMiss(
        title="x is written to in between",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        gate = torch.sigmoid(h)
        h.mul_(2)
        return h * gate
""",
        reported=True,
    ),
    NearMiss(
        title="the gate is returned as well",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        gate = torch.sigmoid(h)
        return h * gate, gate
""",
        reported=True,
    ),
    NearMiss(
        title="hard: a piecewise one",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * F.hardsigmoid(x)
""",
    ),
    NearMiss(
        title="the gate alone is squared",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x) ** 2
""",
    ),
    NearMiss(
        title="the derivative",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        s = torch.sigmoid(x)
        return s * (1 + x * (1 - s))
""",
    ),
    NearMiss(
        title="softplus: log of one plus exp",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x / torch.log(1 + torch.exp(-x))
""",
    ),
    NearMiss(
        title="the wrong sign",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x / (1 + torch.exp(x))
""",
    ),
    NearMiss(
        title="two draws of dropout",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) * torch.sigmoid(self.drop(x))
""",
    ),
    NearMiss(
        title="another library's",
        source="""\
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Net(nn.Module):
    def forward(self, x):
        return x * sigmoid(x)
""",
    ),
)
