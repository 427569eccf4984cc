"""Functions that a run breaks all over in, written to deceive what leaves them out of graphs.

Each text has a class ``Net`` with ``level`` in it, or a function ``level``, and defines what is run as an example does.
"""

from __future__ import annotations

_RUN = """
def make():
    return Net()

calls = [(torch.ones(n) * n,) for n in (1, 2, 4)]
"""
_FORWARD = """
    def forward(self, x):
        return self.level(x * 2) + x, self.level(x)
"""

#: To be left out of graphs: the same when they run, eagerly and compiled.
OUT = {
    "a method of the class above": """
class Base(nn.Module):
    def level(self, x):
        return x.mean() if x.sum() > 3 else x.amax()


class Net(Base):
    def level(self, x):
        if x.sum() > 9:
            return super().level(x) + 1
        return super().level(x)
"""
    + _FORWARD,
    "names that a class spells otherwise": """
class Net(nn.Module):
    def __own(self, x):
        return x * 2

    def level(self, x):
        return self.__own(x).mean() if x.sum() > 3 else x.amax()
"""
    + _FORWARD,
    "an alias below, and an attribute of the function": """
class Net(nn.Module):
    def level(self, x, seen=[]):
        seen.append(1)
        return x.mean() * len(seen) if x.sum() > 3 else x.amax()

    level.unit = 3
    again = level

    def forward(self, x):
        return self.level(x * 2), self.again(x) * self.level.unit
""",
    "writes to what it is given, and gives it back": """
class Net(nn.Module):
    def level(self, x):
        if x.sum() > 3:
            x.mul_(2)
        return x

    def forward(self, x):
        y = x.clone()
        return self.level(y), y, self.level(x + 1)
""",
    "every kind of parameter": """
class Net(nn.Module):
    def level(self, x, /, by=2.0, *more, add: float = 1.0, **others):
        x = x * by + add + sum(more) + sum(others.values())
        return x.mean() if x.sum() > 3 else x.amax()

    def forward(self, x):
        return self.level(x), self.level(x, 3.0, 1, 2, add=4, other=5)
""",
    "one layer of a model, which is a module": """
class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(1, 1)

    def level(self, x):
        y = self.lin(x.unsqueeze(-1)).squeeze(-1)
        return y * 2 if x.sum() > 3 else y

    def forward(self, x):
        return self.level(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Level()

    def forward(self, x):
        return self.inner(x * 2) + x
""",
    "draws numbers": """
class Net(nn.Module):
    def level(self, x):
        noise = torch.rand(x.shape)
        return x * noise if x.sum() > 3 else x + noise
"""
    + _FORWARD,
    "raises what is caught": """
class Net(nn.Module):
    def level(self, x):
        if x.sum() > 3:
            raise ValueError("too much")
        return x.amax()

    def asked(self, x):
        try:
            return self.level(x)
        except ValueError as error:
            return x.mean() + len(str(error))

    def forward(self, x):
        return self.asked(x * 2) + x, self.asked(x)
""",
    "a function of the module with a global": """
COUNT = 0


def level(x):
    global COUNT
    COUNT += 1
    return x.mean() * COUNT if x.sum() > 3 else x.amax()


class Net(nn.Module):
    def forward(self, x):
        return level(x * 2) + x, level(x)
""",
    "with autocast around it": """
class Net(nn.Module):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def level(self, x):
        y = x.unsqueeze(0) @ x.unsqueeze(1)
        return y.float() if y.sum() > 3 else y.float() * 2
"""
    + _FORWARD,
    "in a block that keeps no gradients": """
class Net(nn.Module):
    def level(self, x):
        y = x.mean() if x.sum() > 3 else x.amax()
        return y if y.requires_grad else y + 1

    def forward(self, x):
        with torch.no_grad():
            y = self.level(x)
        return y + self.level(x)
""",
}

#: To be left as they are.
LEFT = {
    "a generator behind a decorator": """
import contextlib


class Net(nn.Module):
    @contextlib.contextmanager
    def level(self, x):
        yield x.mean() if x.sum() > 3 else x.amax()

    def forward(self, x):
        with self.level(x * 2) as y:
            return x * y
""",
    "a lambda that yields, in it": """
class Net(nn.Module):
    def level(self, x):
        return (yield x)

    def forward(self, x):
        return sum(self.level(x))
""",
    "forward of a model of which nothing is known": """
class Net(nn.Module):
    class level(nn.Module):
        def forward(self, x):
            return x.mean() if x.sum() > 3 else x.amax()

    def forward(self, x):
        return Net.level()(x)
""",
    "compiled by a call, as an attribute": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = torch.compile(self.level, backend="eager")

    def level(self, x):
        return x.mean() if x.sum() > 3 else x.amax()
"""
    + _FORWARD,
    "torch is another thing where the class is made": """
class torch(torch.nn.Module):
    pass


class Net(nn.Module):
    def level(self, x):
        return x.mean() if x.sum() > 3 else x.amax()
"""
    + _FORWARD,
}
RUN = _RUN
