"""What PickledKeywords reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="two classes that share what stands for none",
        before="""\
import pickle


class Named(nn.Module):
    def forward(self, x, **kwargs):
        x = x.sin()
        return x.cos(), pickle.dumps(kwargs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.named = Named()

    def forward(self, x, **kwargs):
        own = pickle.dumps(kwargs)
        x, name = self.named(x * 2)
        return x if name == own else x * 2
""",
        after="""\
import pickle


_no_keywords = pickle.dumps({})


class Named(nn.Module):
    def forward(self, x, **kwargs):
        x = x.sin()
        return x.cos(), (pickle.dumps(kwargs) if kwargs else _no_keywords)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.named = Named()

    def forward(self, x, **kwargs):
        own = pickle.dumps(kwargs) if kwargs else _no_keywords
        x, name = self.named(x * 2)
        return x if name == own else x * 2
""",
        run="def make(): return Net()\ncalls = [(torch.linspace(-1, 1, 4),)]\n",
    ),
    Example(
        title="a memo of one module",
        before="""\
import pickle


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def once(self, memo, x, **kwargs):
        key = pickle.dumps(kwargs)
        if key not in memo:
            memo[key] = self.lin(x)
        return memo[key]

    def forward(self, x):
        memo = {}
        return self.once(memo, x) + self.once(memo, x + 1)
""",
        after="""\
import pickle


_no_keywords = pickle.dumps({})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def once(self, memo, x, **kwargs):
        key = pickle.dumps(kwargs) if kwargs else _no_keywords
        if key not in memo:
            memo[key] = self.lin(x)
        return memo[key]

    def forward(self, x):
        memo = {}
        return self.once(memo, x) + self.once(memo, x + 1)
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
train = True
""",
    ),
    Example(
        title="by another name, handed on",
        before="""\
from pickle import dumps


class Net(nn.Module):
    def stored(self, memo, key, value):
        memo[key] = value
        return value

    def scaled(self, memo, x, **given):
        return self.stored(memo, dumps(given), x * 2)

    def forward(self, x):
        memo = {}
        y = self.scaled(memo, x)
        return y + len(memo)
""",
        after="""\
from pickle import dumps


_no_keywords = dumps({})


class Net(nn.Module):
    def stored(self, memo, key, value):
        memo[key] = value
        return value

    def scaled(self, memo, x, **given):
        return self.stored(memo, dumps(given) if given else _no_keywords, x * 2)

    def forward(self, x):
        memo = {}
        y = self.scaled(memo, x)
        return y + len(memo)
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="some calls have keywords",
        before="""\
import pickle as pk


class Net(nn.Module):
    def remembered(self, memo, x, **options):
        key = pk.dumps(options)
        if key not in memo:
            memo[key] = x * options.get("scale", 2)
        return memo[key]

    def forward(self, x):
        memo = {}
        for _ in range(2):
            x = x + self.remembered(memo, x)
        return x
""",
        after="""\
import pickle as pk


_no_keywords = pk.dumps({})


class Net(nn.Module):
    def remembered(self, memo, x, **options):
        key = pk.dumps(options) if options else _no_keywords
        if key not in memo:
            memo[key] = x * options.get("scale", 2)
        return memo[key]

    def forward(self, x):
        memo = {}
        for _ in range(2):
            x = x + self.remembered(memo, x)
        return x
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="two functions deep",
        before="""\
import pickle


class Net(nn.Module):
    def size(self, memo, x, **kwargs):
        stored = pickle.dumps(kwargs)
        memo.setdefault(stored, x.shape[-1])
        return memo[stored]

    def grown(self, memo, x):
        return x * self.size(memo, x) + self.size(memo, x + 1)

    def forward(self, x):
        memo = {}
        return self.grown(memo, torch.relu(x)) + 1
""",
        after="""\
import pickle


_no_keywords = pickle.dumps({})


class Net(nn.Module):
    def size(self, memo, x, **kwargs):
        stored = pickle.dumps(kwargs) if kwargs else _no_keywords
        memo.setdefault(stored, x.shape[-1])
        return memo[stored]

    def grown(self, memo, x):
        return x * self.size(memo, x) + self.size(memo, x + 1)

    def forward(self, x):
        memo = {}
        return self.grown(memo, torch.relu(x)) + 1
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="what it answers is returned",
        before="""\
import pickle


class Net(nn.Module):
    def key(self, **kwargs):
        return pickle.dumps(kwargs)

    def forward(self, x):
        y = x * 2
        return y + len(self.key())
""",
        after="""\
import pickle


_no_keywords = pickle.dumps({})


class Net(nn.Module):
    def key(self, **kwargs):
        return pickle.dumps(kwargs) if kwargs else _no_keywords

    def forward(self, x):
        y = x * 2
        return y + len(self.key())
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
    Example(
        title="in a class method",
        before="""\
import pickle


class Net(nn.Module):
    @classmethod
    def named(cls, memo, x, **kwargs):
        key = pickle.dumps(kwargs)
        memo[key] = x
        return memo[key].sum()

    def forward(self, x):
        return self.named({}, x * 3) + x
""",
        after="""\
import pickle


_no_keywords = pickle.dumps({})


class Net(nn.Module):
    @classmethod
    def named(cls, memo, x, **kwargs):
        key = pickle.dumps(kwargs) if kwargs else _no_keywords
        memo[key] = x
        return memo[key].sum()

    def forward(self, x):
        return self.named({}, x * 3) + x
""",
        run="""\
def make(): return Net()
calls = [(torch.linspace(-1, 1, 6),)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="what comes in as one argument, or was bound again",
        source="""\
import pickle
from collections import OrderedDict


class Net(nn.Module):
    def first(self, kwargs):
        return len(pickle.dumps(kwargs))

    def second(self, **kwargs):
        kwargs = OrderedDict(kwargs)
        return len(pickle.dumps(kwargs))

    def forward(self, x):
        return x * self.first({}) + self.second()
""",
    ),
    NearMiss(
        title="another protocol",
        source="""\
import pickle


class Net(nn.Module):
    def key(self, **kwargs):
        return len(pickle.dumps(kwargs, protocol=2))

    def forward(self, x):
        return x * self.key()
""",
    ),
    NearMiss(
        title="other functions called dumps",
        source="""\
import json


def dumps(what):
    return len(what)


class Net(nn.Module):
    def key(self, **kwargs):
        return len(json.dumps(kwargs)) + dumps(kwargs)

    def forward(self, x):
        return x * self.key()
""",
    ),
    NearMiss(
        title="asked already",
        source="""\
import pickle

NONE = pickle.dumps({})


class Net(nn.Module):
    def key(self, **kwargs):
        return len(pickle.dumps(kwargs) if kwargs else NONE)

    def forward(self, x):
        return x * self.key()
""",
    ),
    NearMiss(
        title="a function inside may bind it again",
        source="""\
import pickle


class Net(nn.Module):
    def key(self, **kwargs):
        def other():
            nonlocal kwargs
            kwargs = []

        other()
        return len(pickle.dumps(kwargs))

    def forward(self, x):
        return x * self.key()
""",
    ),
    NearMiss(
        title="positional arguments",
        source="""\
import pickle


class Net(nn.Module):
    def key(self, *args):
        return len(pickle.dumps(args))

    def forward(self, x):
        return x * self.key()
""",
    ),
)
