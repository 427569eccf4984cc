"""Who else has the state in his hands: other objects, other code, other files."""

from __future__ import annotations

from tests.caches_attacks.forms import FORK, LIST, MADE, ONE, PLAIN, SINGLE, START, Cases, alter, probe

#: The state leaves the class.
LEAVING: Cases = {
    "a length that is a live view": (
        alter(PLAIN, ("return int(self._used[layer].item())", "return self._used[layer]")),
        probe("n = memory.length(0)", "memory.append(0, rows(2))", "out.append((n, n.add(1)))"),
    ),
    "a copy of the lengths that the caller keeps": (
        alter(
            PLAIN,
            more="""
    def lengths(self):
        return self._used.tolist()
""",
        ),
        probe("held = memory.lengths()", "memory.append(0, rows(1))", "held[1] = 77", "out.append(held)"),
    ),
    "the lengths themselves, which the caller keeps": (
        alter(
            PLAIN,
            more="""
    def lengths(self):
        return self._used
""",
        ),
        probe("held = memory.lengths()", "memory.append(0, rows(1))", "out.append(held)", "out.append(held.max())"),
    ),
    "the result of zero_ is returned": (
        alter(PLAIN, ("self._used.zero_()", "return self._used.zero_()")),
        probe("held = memory.reset()", "memory.append(0, rows(1))", "out.append(held)"),
    ),
    "read from outside": (
        PLAIN
        + """

def total(memory):
    return memory._used.sum()
""",
        probe("out.append(total(memory))"),
    ),
    "changed from outside": (
        PLAIN
        + """

def rewind(memory, n):
    memory._used -= n
    memory._used[0].sub_(n)
""",
        probe("rewind(memory, 1)"),
    ),
    "changed from outside, by names that are made up": (
        PLAIN
        + """

def rewind(memory, n):
    used = getattr(memory, "_" + "used")
    used.sub_(n)
    setattr(memory, "_" + "used", used * 2)
""",
        probe("rewind(memory, 1)"),
    ),
    "found by its name in a table": (
        PLAIN
        + """

STATE = ("_keys", "_used")


def state_of(memory):
    return {name: getattr(memory, name).clone() for name in STATE}
""",
        probe("out.append(state_of(memory))"),
    ),
    "vars and __dict__": (
        PLAIN
        + """

def sizes(memory):
    return [v.numel() for v in vars(memory).values()] + [memory.__dict__["_used"].sum()]
""",
        probe("out.append(sizes(memory))"),
    ),
    "operator.attrgetter": (
        """\
import operator

used = operator.attrgetter("_used")


"""
        + PLAIN,
        probe("used(memory).sub_(1)", "out.append(used(memory).sum())"),
    ),
    "a method that walks over its tensors": (
        alter(
            PLAIN,
            more="""
    def to(self, device):
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self

    def bytes(self):
        return sum(v.nbytes for v in self.__dict__.values() if torch.is_tensor(v))

    def double(self):
        for name in ("_keys", "_used"):
            setattr(self, name, getattr(self, name).double())
""",
        ),
        probe(
            "out.append(memory.bytes())",
            "memory.to('cpu')",
            "out.append([type(v).__name__ for v in vars(memory).values()])",
        ),
    ),
    "a second cache that shares the state": (
        alter(
            PLAIN,
            more="""
    def draft(self):
        other = Memory(2, 2, 40, 4)
        other._used = self._used
        return other
""",
        ),
        probe("other = memory.draft()", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "a second cache that shares the one counter": (
        alter(
            SINGLE,
            more="""
    def draft(self):
        other = Memory(2, 2, 40, 4)
        other._used = self._used
        return other
""",
        ),
        probe(
            "other = memory.draft()",
            "other.append(0, rows(2))",
            "out.append(told(other))",
            "memory.append(0, rows(1))",
            "out.append(told(other))",
        ),
    ),
    "an object that is given the state": (
        alter(
            SINGLE,
            (
                "        self._used = torch.zeros((), dtype=torch.long)",
                "        self._used = torch.zeros((), dtype=torch.long)\n"
                "        self.view = View(self._keys, self._used)",
            ),
            more="""

class View:
    def __init__(self, keys, used):
        self.keys, self.used = keys, used

    def all(self):
        return self.keys[:, :, : self.used]
""",
        ),
        probe("out.append(memory.view.all().clone())"),
    ),
    "copy.copy shares one counter": (
        FORK + SINGLE,
        probe("other = fork(memory)", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "copy.copy shares one counter that is added to": (
        FORK + alter(SINGLE, ("self._used.fill_(end)", "self._used += keys.shape[1]")),
        probe("other = fork(memory)", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "copy.copy shares the element": (
        FORK + alter(ONE, ("self._used.fill_(end)", "self._used[0] = end")),
        probe("other = fork(memory)", "other.append(0, rows(2))", "out.append(told(other))", "other.reset()"),
    ),
    "copy.copy of a cache with a list of counters": (
        FORK + LIST,
        probe("other = fork(memory)", "other.append(0, rows(2))", "out.append(told(other))", "other.reset()"),
    ),
    "a copy whose list is copied, with the same tensors in it": (
        alter(
            LIST,
            more="""
    def fork(self):
        other = Memory(2, 2, 40, 4)
        other._keys = self._keys
        other._used = list(self._used)
        return other
""",
        ),
        probe("other = memory.fork()", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "a fork through __dict__": (
        alter(
            SINGLE,
            more="""
    def fork(self):
        other = Memory.__new__(Memory)
        other.__dict__.update(self.__dict__)
        return other
""",
        ),
        probe("other = memory.fork()", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "copy.copy in another function, of whatever it gets": (
        """\
import copy


def both(thing):
    return thing, copy.copy(thing)


"""
        + SINGLE,
        probe("memory, other = both(memory)", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "deepcopy of two that share": (
        "import copy\n\n\n"
        + alter(
            SINGLE,
            more="""
    def linked(self):
        other = copy.copy(self)
        return copy.deepcopy([self, other])
""",
        ),
        probe("a, b = memory.linked()", "a.append(0, rows(2))", "out.append((told(a), told(b)))"),
    ),
    "deepcopy and pickle": (
        "import copy\nimport pickle\n\n\n" + PLAIN,
        probe(
            "other, third = copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))",
            "memory.append(0, rows(2))",
            "out.append((told(other), told(third)))",
        ),
    ),
    "__getstate__ hands the tensor out": (
        "import copy\n\n\n"
        + alter(
            PLAIN,
            more="""
    def __getstate__(self):
        return {"_keys": self._keys, "_used": self._used.clone()}

    def __setstate__(self, state):
        self._keys, self._used = state["_keys"], state["_used"].mul(2)
""",
        ),
        probe("other = copy.copy(memory)", "memory.append(0, rows(2))", "out.append(other.length(0))"),
    ),
    "a state_dict by hand": (
        alter(
            PLAIN,
            more="""
    def state_dict(self):
        return {"keys": self._keys, "used": self._used}

    def load_state_dict(self, state):
        self._keys.copy_(state["keys"])
        self._used.copy_(state["used"])
""",
        ),
        probe(
            "other = new()",
            "other.load_state_dict(memory.state_dict())",
            "out.append((memory.state_dict(), told(other)))",
        ),
    ),
    "state that is loaded from outside": (
        alter(
            PLAIN,
            more="""
    def load(self, used):
        self._used = used
""",
        ),
        probe("used = torch.tensor([2, 5])", "memory.load(used)", "memory.append(0, rows(1))", "out.append(used)"),
    ),
    "dataclasses.asdict and replace": (
        """\
import dataclasses


@dataclasses.dataclass
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = None
    _used: torch.Tensor = None

    def __post_init__(self):
        if self._keys is None:
            self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
            self._used = torch.zeros(self.layers, dtype=torch.int)
"""
        + PLAIN[PLAIN.index("\n    def length") :],
        probe(
            "out.append([v for v in dataclasses.asdict(memory).values()])",
            "other = dataclasses.replace(memory, room=40)",
            "other.append(0, rows(1))",
            "out.append(told(other))",
        ),
    ),
    "fields of a dataclass, by their type": (
        """\
import dataclasses


@dataclasses.dataclass
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(init=False)
    _used: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._used = torch.zeros(self.layers, dtype=torch.int)

    def tensors(self):
        return [f.name for f in dataclasses.fields(self) if f.type is torch.Tensor]
"""
        + PLAIN[PLAIN.index("\n    def length") :],
        probe("out.append(memory.tensors())"),
    ),
    "a frozen dataclass, whose tensor is written": (
        """\
import dataclasses


@dataclasses.dataclass(frozen=True)
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(init=False)
    _used: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "_keys", torch.zeros(self.layers, self.batch, self.room, self.size))
        object.__setattr__(self, "_used", torch.zeros((), dtype=torch.long))
"""
        + SINGLE[SINGLE.index("\n    def length") :],
        probe(),
    ),
    "a frozen dataclass with a default factory": (
        """\
import dataclasses


@dataclasses.dataclass(frozen=True)
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(default_factory=lambda: torch.zeros(2, 2, 40, 4))
    _used: torch.Tensor = dataclasses.field(default_factory=lambda: torch.tensor(0))
"""
        + SINGLE[SINGLE.index("\n    def length") :],
        probe(),
    ),
    "a tensor as the default of a dataclass, one for all": (
        """\
import dataclasses


@dataclasses.dataclass(eq=False)
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _used: torch.Tensor = torch.zeros((), dtype=torch.long)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
"""
        + SINGLE[SINGLE.index("\n    def length") :],
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "a class attribute, one for all": (
        alter(
            PLAIN,
            ("class Memory:\n", "class Memory:\n    _used = torch.zeros(2, dtype=torch.int)\n\n"),
            ("        self._used = torch.zeros(layers, dtype=torch.int)\n", ""),
        ),
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "a class attribute, one 0-d tensor for all, set through the class": (
        alter(
            SINGLE,
            ("class Memory:\n", "class Memory:\n    _used = torch.tensor(0)\n\n"),
            ("        self._used = torch.zeros((), dtype=torch.long)\n", ""),
            ("self._used.fill_(end)", "self._used += keys.shape[1]"),
        ),
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "a global tensor, one for all": (
        "USED = torch.zeros(2, dtype=torch.int)\n\n\n" + alter(PLAIN, (MADE, "USED")),
        probe("other = new()", "out.append((other.length(0), USED.clone()))"),
    ),
    "a default argument, one for all": (
        alter(
            PLAIN,
            ("room, size):", "room, size, used=torch.zeros(2, dtype=torch.int)):"),
            (MADE, "used"),
        ),
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "a factory that gives the same tensor again": (
        """\
import functools


@functools.lru_cache
def fresh(layers):
    return torch.zeros(layers, dtype=torch.int)


"""
        + alter(PLAIN, (MADE, "fresh(layers)")),
        probe("other = new()", "out.append(other.length(0))"),
    ),
}

#: Who else sees it.
SEEN: Cases = {
    "a private method under another name": (
        alter(
            PLAIN,
            (START, "        start = int(self._at(layer))\n"),
            more="""
    def _at(self, layer):
        return self._used[layer]

    at = _at
    first = property(lambda self: self._at(0))
""",
        ),
        probe("out.append((memory.at(0), memory.first))"),
    ),
    "an async method": (
        "import asyncio\n\n\n"
        + alter(
            PLAIN,
            more="""
    async def total(self):
        return self._used.sum()
""",
        ),
        probe("out.append(asyncio.run(memory.total()))"),
    ),
    "a method under a condition": (
        alter(
            PLAIN,
            more="""
    if hasattr(torch, "compile"):
        def total(self):
            return self._used.sum()
""",
        ),
        probe("out.append(memory.total())"),
    ),
    "lambdas in the body of the class": (
        alter(
            PLAIN,
            more="""
    total = lambda self: self._used.sum()
    most = property(lambda me: me._used.max())
""",
        ),
        probe("out.append((memory.total(), memory.most))"),
    ),
    "a class inside of a method": (
        alter(
            PLAIN,
            more="""
    def view(self):
        class View:
            total = self._used.sum()

            def most(view):
                return self._used.max()

        return View()
""",
        ),
        probe("out.append((memory.view().total, memory.view().most()))"),
    ),
    "a static method": (
        alter(
            PLAIN,
            more="""
    @staticmethod
    def total(memory):
        return memory._used.sum()

    @staticmethod
    def both(layer, memory):
        memory._used.add_(1)
        return memory._used.sum()

    @classmethod
    def of(cls, memory):
        return memory._used.sum()
""",
        ),
        probe("out.append((memory.total(memory), memory.both(0, memory), memory.of(memory)))"),
    ),
    "another name for self": (
        alter(
            PLAIN,
            more="""
    def total(self):
        me = self
        me._used.add_(1)
        return me._used.sum()
""",
        ),
        probe("out.append(memory.total())"),
    ),
    "what a private method returns, outside": (
        alter(
            PLAIN,
            (START, "        start = int(self._at(layer))\n"),
            more="""
    def _at(self, layer):
        return self._used[layer]


def place(memory):
    return memory._at(0).add(1)
""",
        ),
        probe("out.append(place(memory))"),
    ),
    "what a private property returns, outside": (
        alter(
            SINGLE,
            ("start = self._used.item()", "start = int(self._filled)"),
            more="""
    @property
    def _filled(self):
        return self._used


def place(memory):
    return memory._filled.add(1)
""",
        ),
        probe("out.append(place(memory))"),
    ),
    "what a private method returns, in a subclass": (
        alter(
            PLAIN,
            (START, "        start = int(self._at(layer))\n"),
            more="""
    def _at(self, layer):
        return self._used[layer]


class Rolling(Memory):
    def rewind(self):
        self._at(0).sub_(1)
""",
        ),
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind()"),
    ),
    "what a private method returns, in a lambda": (
        alter(
            PLAIN,
            (START, "        start = int(self._at(layer))\n"),
            more="""
    def _at(self, layer):
        return self._used[layer]

    def later(self):
        return lambda: self._at(0).add(1)
""",
        ),
        probe("out.append(memory.later()())"),
    ),
    "a subclass of an alias": (
        alter(
            PLAIN,
            more="""

Base = Memory


class Rolling(Base):
    def rewind(self, n):
        self._used.sub_(n)
""",
        ),
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind(2)"),
    ),
    "a subclass of a generic class": (
        "from typing import Generic, TypeVar\n\nT = TypeVar('T')\n\n\n"
        + alter(PLAIN, ("class Memory:", "class Memory(Generic[T]):"))
        + """

class Rolling(Memory[int]):
    def rewind(self, n):
        self._used.sub_(n)
""",
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind(2)"),
    ),
    "a subclass that type() makes": (
        PLAIN
        + """

Rolling = type("Rolling", (Memory,), {"rewind": lambda self, n: self._used.sub_(n)})
""",
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind(2)"),
    ),
    "a class that borrows a method": (
        PLAIN
        + """

class Borrower:
    length = Memory.length

    def __init__(self):
        self._used = torch.tensor([4, 5])
""",
        probe("out.append(Borrower().length(1))"),
    ),
    "a pattern that reads the attribute": (
        PLAIN
        + """

def total(memory):
    match memory:
        case Memory(_used=used):
            return used.sum()
""",
        probe("out.append(total(memory))"),
    ),
    "a format string that reads the attribute": (
        PLAIN
        + """

def shown(memory):
    return "{0._used}".format(memory)
""",
        probe("out.append(shown(memory))"),
    ),
    "setattr by a constant name": (
        PLAIN
        + """

def seek(memory, used):
    setattr(memory, "_used", used)
""",
        probe("used = torch.tensor([1, 2])", "seek(memory, used)", "memory.append(0, rows(1))", "out.append(used)"),
    ),
    "object.__getattribute__": (
        PLAIN
        + """

def total(memory):
    return object.__getattribute__(memory, "_used").sum() + memory.__getattribute__("_used").sum()
""",
        probe("out.append(total(memory))"),
    ),
    "an attribute with the name of a tensor's": (
        alter(PLAIN, ("_used", "data"))
        + """

def total(memory):
    return memory.data.sum()
""",
        probe("out.append(total(memory))"),
    ),
    "an object called config": (
        PLAIN
        + """

class Run:
    def __init__(self, config):
        self.config = config

    def total(self):
        return self.config._used.sum()
""",
        probe("out.append(Run(memory).total())"),
    ),
    "a shallow copy by a function that is handed on": (
        """\
import copy


def forked(memories):
    return list(map(copy.copy, memories))


"""
        + SINGLE,
        probe("other = forked([memory])[0]", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "a dataclass that is hashed": (
        """\
import dataclasses


@dataclasses.dataclass(eq=True, unsafe_hash=True)
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(init=False, repr=False)
    _used: torch.Tensor = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._used = torch.zeros(self.layers, dtype=torch.int)
"""
        + PLAIN[PLAIN.index("\n    def length") :],
        probe("out.append(len({memory, new()}))"),
    ),
    "a dataclass that is compared": (
        """\
import dataclasses


@dataclasses.dataclass
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(init=False, repr=False, compare=False)
    _used: torch.Tensor = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._used = torch.zeros(self.layers, dtype=torch.int)
"""
        + PLAIN[PLAIN.index("\n    def length") :]
        + """

def known(memory, others):
    return memory in others
""",
        probe("out.append(known(memory, [memory]))"),
    ),
    "a scripted class": (
        """\
from typing import List


@torch.jit.script
class Memory:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = torch.zeros(layers, dtype=torch.int)

    def length(self, layer: int) -> int:
        return int(self._used[layer].item())

    def append(self, layer: int, keys: torch.Tensor):
        start = int(self._used[layer].item())
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._used[layer] = end

    def all(self, layer: int) -> torch.Tensor:
        return self._keys[layer, :, : int(self._used[layer].item())]

    def reset(self):
        self._used.zero_()


@torch.jit.script
def filled(keys: torch.Tensor) -> torch.Tensor:
    memory = Memory(2, 2, 40, 4)
    memory.append(0, keys)
    memory.append(0, keys)
    return memory.all(0) * memory.length(0)
""",
        """
def make(): return filled
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (3, 1, 2, 4)]
""",
    ),
    "a scripted class that holds integers": (
        """\
from typing import List


class Memory:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = [0] * layers

    def length(self, layer: int) -> int:
        return self._used[layer]

    def append(self, layer: int, keys: torch.Tensor):
        start = self._used[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._used[layer] = end

    def all(self, layer: int) -> torch.Tensor:
        return self._keys[layer, :, : self._used[layer]]


@torch.jit.script
def filled(keys: torch.Tensor) -> torch.Tensor:
    memory = Memory(2, 2, 40, 4)
    memory.append(0, keys)
    memory.append(0, keys)
    return memory.all(0) * memory.length(0)
""",
        """
def make(): return filled
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (3, 1, 2, 4)]
""",
    ),
}

#: What is attacked -> (the cache's file, another file, run).
ELSEWHERE: dict[str, tuple[str, str, str]] = {
    "a subclass elsewhere uses tensor methods": (
        PLAIN,
        """
class Rolling(Memory):
    def rewind(self, n):
        self._used.sub_(n)
""",
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind(2)"),
    ),
    "a function elsewhere reads the state": (
        PLAIN,
        """
def total(memory):
    return memory._used.sum()
""",
        probe("out.append(total(memory))"),
    ),
    "a function elsewhere sets the state": (
        PLAIN,
        """
def seek(memory, used):
    memory._used = used
""",
        probe("used = torch.tensor([1, 2])", "seek(memory, used)", "memory.append(0, rows(1))", "out.append(used)"),
    ),
    "a function elsewhere finds the state by its name": (
        PLAIN,
        """
def total(memory, name="_used"):
    return getattr(memory, name).sum()
""",
        probe("out.append(total(memory))"),
    ),
    "a method that is put on the class elsewhere": (
        PLAIN,
        """
Memory.rewind = lambda self, n: self._used.sub_(n)
""",
        probe("memory.rewind(1)"),
    ),
    "a tensor as an amount, elsewhere": (
        alter(
            PLAIN,
            more="""
    def skip(self, layer, n):
        self._used[layer] = n
""",
        ),
        """
def skip(memory, n):
    memory.skip(0, torch.as_tensor(n))
""",
        probe("n = torch.tensor(2)", "skip(memory, n)", "n += 3", "memory.append(0, rows(1))"),
    ),
    "a module elsewhere holds the cache": (
        PLAIN,
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Memory(2, 2, 40, 4)

    def forward(self, layer, keys):
        self.memory.append(layer, keys)
        return self.memory[layer] * self.memory.length(layer)
""",
        """
def go(net):
    out = []
    for n in (3,) + (1,) * 12:
        for layer in range(2):
            out.append(net(layer, torch.linspace(-1, 1, 8 * n).view(2, n, 4)).clone())
    memory = getattr(net, "_orig_mod", net).memory
    out.append([memory.length(0), memory.length(1)])
    memory.reset()
    return out

def make(): return Net()
calls = [go, go]
""",
    ),
    "a cache elsewhere that is given the same counter": (
        SINGLE,
        """
def linked(a, b):
    b._used = a._used
    return b
""",
        probe("other = linked(memory, new())", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
    "copy.copy elsewhere": (
        SINGLE,
        """
import copy


def fork(memory):
    return copy.copy(memory)
""",
        probe("other = fork(memory)", "other.append(0, rows(2))", "out.append(told(other))"),
    ),
}
