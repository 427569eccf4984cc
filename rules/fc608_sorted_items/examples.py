"""What SortedItems reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="an object that keeps what it was given",
        before="""\
class Net(nn.Module):
    def kept(self, **kwargs):
        tensors = []
        for name, value in sorted(kwargs.items()):
            if torch.is_tensor(value):
                tensors.append(value)
        return tensors

    def forward(self, x):
        for value in self.kept(scale=x + 1, bias=x - 1, steps=2):
            x = x * value
        return x
""",
        after="""\
class Net(nn.Module):
    def kept(self, **kwargs):
        tensors = []
        for name, value in sorted(kwargs.items(), key=lambda item: item[0]):
            if torch.is_tensor(value):
                tensors.append(value)
        return tensors

    def forward(self, x):
        for value in self.kept(scale=x + 1, bias=x - 1, steps=2):
            x = x * value
        return x
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="keywords of a method",
        before="""\
class Net(nn.Module):
    def mixed(self, x, **parts):
        names = []
        for name, value in sorted(parts.items()):
            names.append(name)
            x = x * 0.5 + value
        return x + len(names)

    def forward(self, x):
        return self.mixed(x, second=x * 2, first=x + 1)
""",
        after="""\
class Net(nn.Module):
    def mixed(self, x, **parts):
        names = []
        for name, value in sorted(parts.items(), key=lambda item: item[0]):
            names.append(name)
            x = x * 0.5 + value
        return x + len(names)

    def forward(self, x):
        return self.mixed(x, second=x * 2, first=x + 1)
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="a dict that is written out",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        found = {"mean": x.mean(), "largest": x.max()}
        return torch.stack([value for _, value in sorted(found.items())])
""",
        after="""\
class Net(nn.Module):
    def forward(self, x):
        found = {"mean": x.mean(), "largest": x.max()}
        return torch.stack([value for _, value in sorted(found.items(), key=lambda item: item[0])])
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="a dict of a comprehension",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"b": nn.Linear(6, 6), "a": nn.Linear(6, 6)})

    def forward(self, x):
        found = {name: layer(x) for name, layer in self.layers.items()}
        return torch.cat([value for name, value in sorted(found.items())])
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"b": nn.Linear(6, 6), "a": nn.Linear(6, 6)})

    def forward(self, x):
        found = {name: layer(x) for name, layer in self.layers.items()}
        return torch.cat([value for name, value in sorted(found.items(), key=lambda item: item[0])])
""",
        unsafe=True,
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
train = True
""",
    ),
    Example(
        title="a dict that is filled below",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        losses = {}
        for power in (3, 1, 2):
            losses[power] = x.pow(power).sum()
        total = 0
        for power, loss in sorted(losses.items()):
            total = total * 2 + loss
        return total
""",
        after="""\
class Net(nn.Module):
    def forward(self, x):
        losses = {}
        for power in (3, 1, 2):
            losses[power] = x.pow(power).sum()
        total = 0
        for power, loss in sorted(losses.items(), key=lambda item: item[0]):
            total = total * 2 + loss
        return total
""",
        unsafe=True,
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="backwards",
        before="""\
class Net(nn.Module):
    def joined(self, **parts):
        return torch.cat([value for _, value in sorted(parts.items(), reverse=True)])

    def forward(self, x):
        return self.joined(a=x, c=x * 2, b=x + 1)
""",
        after="""\
class Net(nn.Module):
    def joined(self, **parts):
        return torch.cat([value for _, value in sorted(parts.items(), reverse=True, key=lambda item: item[0])])

    def forward(self, x):
        return self.joined(a=x, c=x * 2, b=x + 1)
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="it says by what",
        source="""\
class Net(nn.Module):
    def forward(self, x, **parts):
        largest = sorted(parts.items(), key=lambda item: item[1].sum())
        return x + largest[0][1]
""",
    ),
    NearMiss(
        title="literals, which Dynamo knows",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        widths = {"b": 2, "a": 1}
        for _, width in sorted(widths.items()):
            x = x * width
        return x
""",
    ),
    NearMiss(
        title="an object with items of its own",
        source="""\
class Pairs:
    def __init__(self, x):
        self.x = x

    def items(self):
        return [("a", self.x.sum()), ("a", self.x.mean())]


class Net(nn.Module):
    def forward(self, x, given):
        pairs = Pairs(x)
        return x + sorted(pairs.items())[0][1] + sorted(given.items())[0][1]
""",
    ),
    NearMiss(
        title="values, keys, and what is no dict",
        source="""\
class Net(nn.Module):
    def forward(self, x, **parts):
        names = sorted(parts)
        others = sorted(parts.keys())
        pairs = sorted([(1, x), (0, x)])
        return x + len(names) + len(others) + pairs[0][1]
""",
    ),
    NearMiss(
        title="it may be something else by then",
        source="""\
class Net(nn.Module):
    def forward(self, x, other=None, **parts):
        if other is not None:
            parts = other
        for _, value in sorted(parts.items()):
            x = x + value
        return x
""",
    ),
    NearMiss(
        title="`sorted` is another name",
        source="""\
def sorted(items):
    return [(name, value * 2) for name, value in items]


class Net(nn.Module):
    def forward(self, x, **parts):
        for _, value in sorted(parts.items()):
            x = x + value
        return x
""",
    ),
)
