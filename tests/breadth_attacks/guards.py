"""Guards, messages, buffers that are assigned again, and numbers that are read."""

from __future__ import annotations

MADE = "def make(): return Net()\n"
SIGNS = MADE + "calls = [(torch.ones(2),), (torch.ones(2) * 9,), (-torch.ones(2),)]"
STATE = MADE + "calls = [lambda f: (f(torch.ones(3, 2)), f.state_dict())] * 2"

ATTACKS: dict[str, tuple[str, str, str]] = {
    "a try around a module": (
        "FC102",
        """
class Inner(nn.Module):
    def forward(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x.sqrt()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        try:
            h = self.inner(x)
        except ValueError:
            h = x
        return h * 2
""",
        SIGNS,
    ),
    "a try around a caller of the caller": (
        "FC102",
        """
class Net(nn.Module):
    def need(self, x):
        assert not (x < 0).any(), f"negative: {x}"

    def root(self, x):
        self.need(x)
        return x.sqrt()

    def forward(self, x):
        try:
            return self.root(x)
        except Exception:
            return x
""",
        SIGNS,
    ),
    "a wrapper that is given the function": (
        "FC102",
        """
def attempt(function, x):
    try:
        return function(x)
    except (KeyError, ValueError):
        return x


class Net(nn.Module):
    def root(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x.sqrt()

    def forward(self, x):
        return attempt(self.root, x)
""",
        SIGNS,
    ),
    "a property, and a context manager of this file": (
        "FC102",
        """
import contextlib


@contextlib.contextmanager
def quiet():
    try:
        yield
    except ValueError:
        pass


class Net(nn.Module):
    def need(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x

    @property
    def held(self):
        if (self.x < 0).any():
            raise ValueError("negative")
        return self.x

    def forward(self, x):
        self.x = x
        with quiet():
            x = self.need(x) + 1
        try:
            return self.held + x
        except ValueError:
            return x
""",
        SIGNS,
    ),
    "a finally that returns": (
        "FC102",
        """
class Net(nn.Module):
    def forward(self, x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            x = x.sqrt()
        finally:
            return x
""",
        SIGNS,
    ),
    "a handler for other errors": (
        "FC102",
        """
class Net(nn.Module):
    def forward(self, x):
        try:
            if (x > 8).any():
                raise ValueError("large")
        except RuntimeError:
            return x * 0
        return x + 1
""",
        SIGNS,
    ),
    "something with a method any": (
        "FC102",
        """
class Bag:
    def __init__(self, full):
        self.full = full

    def any(self):
        return self.full


class Net(nn.Module):
    def forward(self, x):
        bag = Bag(x.dim() == 1) if x.dim() < 3 else x
        assert not bag.any(), "any"
        return x + 1
""",
        MADE + "calls = [(torch.zeros(2, 2),), (torch.zeros(2),), (torch.zeros(1, 1, 1),)]",
    ),
    "shapes and dtypes of a condition": (
        "FC102",
        """
class Net(nn.Module):
    def forward(self, x):
        if x > 3 or x.isnan():
            raise ValueError("large")
        if not x:
            raise ValueError("zero")
        assert x != 2 and not (x == -2).any(), "two"
        return x.abs()
""",
        MADE
        + "calls = [(torch.tensor(v),) for v in (1.0, 4.0, [1.0], [[5.0]], [1.0, 1.0], 0, [-2], True, float('nan'))]",
    ),
    "a mode that comes back": (
        "FC602",
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        print("normed", self.block.norm(x).shape)
        return x * 2
""",
        STATE,
    ),
    "a dict that fills itself": (
        "FC602",
        """
import collections


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = collections.defaultdict(int)

    def forward(self, x):
        print("seen", self.seen[x.shape[0]])
        return x * (1 + len(self.seen))
""",
        SIGNS,
    ),
    "a property that counts": (
        "FC602",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    @property
    def step(self):
        self.n += 1
        return self.n

    def forward(self, x):
        print("step", self.step)
        return x * self.n
""",
        SIGNS,
    ),
    "iterators": (
        "FC602",
        """
class Net(nn.Module):
    def forward(self, x):
        a, b, c = iter([1, 2]), (i for i in [3, 4]), enumerate([5])
        print(list(a)[:1])
        print(3 in b)
        print(any(c))
        return x * sum(a) + sum(b) + len(list(c))
""",
        SIGNS,
    ),
    "a message that fails, and a try": (
        "FC602",
        """
class Net(nn.Module):
    def shown(self, x):
        print(x.item())

    def forward(self, x):
        try:
            self.shown(x)
        except RuntimeError:
            x = x.sum()
        return x + 1
""",
        SIGNS,
    ),
    "what a caller writes is read": (
        "FC602",
        """
import contextlib
import io


class Net(nn.Module):
    def shown(self, x):
        print(tuple(x.shape))

    def forward(self, x):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.shown(x)
        return x + len(text.getvalue())
""",
        SIGNS,
    ),
    "a logger that measures": (
        "FC602",
        """
class Measured:
    def __init__(self):
        self.values = []

    def info(self, value):
        self.values.append(value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.logger = Measured()

    def forward(self, x):
        self.logger.info(x.shape[0])
        return x * len(self.logger.values)
""",
        SIGNS,
    ),
    "a module that a message converts": (
        "FC602",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        print(self.lin.double().weight.dtype)
        return x.to(self.lin.weight.dtype)
""",
        SIGNS,
    ),
    "branches of one line, and one that only writes": (
        "FC602",
        """
class Net(nn.Module):
    def forward(self, x, flag: bool = False):
        if x.dim() == 3:
            x = x + 1
        elif flag or x.dim() == 1:
            print("a")
        else:
            print("b")
        if flag: print("q")
        if flag: x = x + 1
        else: print("y")
        for i in range(2): print(i)
        return x
""",
        MADE + "calls = [(torch.ones(2),), (torch.ones(2), True), (torch.ones(1, 2),), (torch.ones(1, 1, 2), True)]",
    ),
    "a number in other instances": (
        "FC304",
        """
class Net(nn.Module):
    def __init__(self, saved=False):
        super().__init__()
        if saved:
            self.n = nn.Buffer(torch.tensor(0))
        else:
            self.n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n
""",
        SIGNS,
    ),
    "a subclass that keeps a number": (
        "FC304",
        """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.start()

    def start(self):
        self.n = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        self.n *= 2
        return x * self.n


class Net(Base):
    def start(self):
        self.n = 0.5
""",
        SIGNS,
    ),
    "a bool is an int": (
        "FC201",
        """
class Net(nn.Module):
    def forward(self, x, k: int):
        n = torch.tensor(k, dtype=torch.int64)
        return x, n.item(), torch.tensor([k, 3], dtype=torch.long).max().item()
""",
        MADE + "calls = [(torch.ones(2), k) for k in (2, True, -7)]",
    ),
    "a name that hides a builtin": (
        "FC201",
        """
class Net(nn.Module):
    def forward(self, x, max, int):
        n = torch.tensor([x.shape[0], 2])
        return x[: n.max().item()] + max, torch.tensor(x.shape[0] / int, dtype=torch.int64).item()
""",
        MADE + "calls = [(torch.ones(3), 1, 2)]",
    ),
}
