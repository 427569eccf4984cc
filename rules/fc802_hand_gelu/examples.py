"""What HandGelu reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="with tanh, a module that is nothing else",
        before="""\
import math


class NewGELU(nn.Module):
    def forward(self, x):
        # the tanh form
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
""",
        after="""\
import math


class NewGELU(nn.Module):
    def forward(self, x):
        # the tanh form
        return F.gelu(x, approximate="tanh")
""",
        run="""\
def make(): return NewGELU()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="with erf",
        before="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
""",
        after="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return F.gelu(x)
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
        title="with tanh, the constant written down, x taken out",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(0.5 * h * (1.0 + torch.tanh(h * 0.7978845608 * (1.0 + 0.044715 * h * h))))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.gelu(h, approximate="tanh"))
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
        title="the distribution has a name",
        before="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        cdf = 0.5 * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        return self.out(h * cdf)
""",
        after="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.gelu(h, approximate="tanh"))
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
        title="halves inside, erf as a method",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out((0.5 + 0.5 * (h * 0.7071067811865476).erf()) * h)
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.gelu(h))
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
        title="step by step",
        before="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        cube = torch.pow(h, 3)
        inner = math.sqrt(2 / math.pi) * (h + 0.044715 * cube)
        t = torch.tanh(inner)
        half = 0.5 * h
        return self.out(half * (1 + t))
""",
        after="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        return self.out(F.gelu(h, approximate="tanh"))
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
        title="a method for it, divided by two",
        before="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return self.out(self.act(self.fc(x)))

    def act(self, x):
        return x * (1 + torch.erf(x / math.sqrt(2))) / 2
""",
        after="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return self.out(self.act(self.fc(x)))

    def act(self, x):
        return F.gelu(x)
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
        title="the sigmoid of 1.702 times x",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)
""",
    ),
    NearMiss(
        title="a root of two that is rounded",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.erf(x / 1.41421))
""",
    ),
    NearMiss(
        title="two by pi that is rounded",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3)))
""",
    ),
    NearMiss(
        title="another factor of the cube",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.04715 * x**3)))
""",
    ),
    NearMiss(
        title="the square for the cube",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**2)))
""",
    ),
    NearMiss(
        title="without the half",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return x * (1 + torch.erf(x / math.sqrt(2)))
""",
    ),
    NearMiss(
        title="the distribution alone",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * (1 + torch.erf(x / math.sqrt(2)))
""",
    ),
    NearMiss(
        title="the distribution of something else",
        source="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        return 0.5 * x * (1 + torch.erf(self.fc(x) / math.sqrt(2)))
""",
    ),
    NearMiss(
        title="one less",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 - torch.erf(x / math.sqrt(2)))
""",
    ),
    NearMiss(
        title="erfc",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * torch.erfc(-x / math.sqrt(2))
""",
    ),
    NearMiss(
        title="tanh with the constant of erf",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(x / math.sqrt(2)))
""",
    ),
    NearMiss(
        title="the distribution is returned as well",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        return x * cdf, cdf
""",
        reported=True,
    ),
    NearMiss(
        title="x is written to in between",
        source="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        cdf = 0.5 * (1 + torch.erf(h / math.sqrt(2)))
        h.add_(1)
        return h * cdf
""",
        reported=True,
    ),
    NearMiss(
        title="the distribution without a gradient",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        return x * cdf
""",
        reported=True,
    ),
    NearMiss(
        title="a width that is learnt",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return 0.5 * x * (1 + torch.erf(x / self.width))
""",
    ),
    NearMiss(
        title="a gated one: the other half",
        source="""\
import math


class Net(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return 0.5 * a * (1 + torch.erf(b / math.sqrt(2)))
""",
    ),
)
