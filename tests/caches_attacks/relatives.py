"""Subclasses, bases, hooks, and the modules that keep a cache."""

from __future__ import annotations

from tests.caches_attacks.forms import INTS, MADE, PLAIN, SINGLE, Cases, alter, probe

#: Inheritance, hooks, modules.
INHERITED: Cases = {
    "a subclass that uses tensor methods": (
        PLAIN
        + """

class Rolling(Memory):
    def rewind(self, n):
        self._used.sub_(n).clamp_(min=0)
""",
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(3))", "memory.rewind(2)"),
    ),
    "a subclass that makes something else": (
        PLAIN
        + """

class Rolling(Memory):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self._used = torch.full((2,), 1.5)
""",
        probe("memory = Rolling(2, 2, 40, 4)", "out.append(tried(memory.length, 0))", "memory = new()"),
    ),
    "a subclass that overrides a method of the arithmetic": (
        alter(PLAIN, ("end = start + keys.shape[1]", "end = self._end(layer, keys)"))
        + """
    def _end(self, layer, keys):
        return self._used[layer] + keys.shape[1]


class Rolling(Memory):
    def _end(self, layer, keys):
        return super()._end(layer, keys).clamp(max=3)
""",
        probe("memory = Rolling(2, 2, 40, 4)", "memory.append(0, rows(2))", "memory.append(0, rows(1))"),
    ),
    "a base that uses tensor methods": (
        """\
class Base:
    def rewind(self, n):
        self._used -= n

    def total(self):
        return self._used.sum().item()


"""
        + alter(PLAIN, ("class Memory:", "class Memory(Base):")),
        probe("memory.rewind(1)", "out.append(memory.total())"),
    ),
    "a base that makes the state": (
        """\
class Base:
    def __init__(self, layers):
        self._used = torch.zeros(layers, dtype=torch.int)

    def total(self):
        return self._used.sum()


"""
        + alter(
            PLAIN,
            ("class Memory:", "class Memory(Base):"),
            ("        self._used = " + MADE, "        super().__init__(layers)"),
        ),
        probe("out.append(memory.total())"),
    ),
    "a mixin next to it": (
        PLAIN
        + """

class Counting:
    def total(self):
        return self._used.sum() + self._used.max()


class Counted(Memory, Counting):
    pass
""",
        probe("memory = Counted(2, 2, 40, 4)", "memory.append(0, rows(3))", "out.append(memory.total())"),
    ),
    "a base that is made by a function": (
        """\
def counting(name):
    def total(self):
        return getattr(self, name).sum()
    return type("Counting", (), {"total": total})


"""
        + alter(PLAIN, ("class Memory:", "class Memory(counting('_used')):")),
        probe("out.append(memory.total())"),
    ),
    "a metaclass that looks at new attributes": (
        """\
class Watched(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.names = [k for k, v in vars(made).items() if isinstance(v, torch.Tensor)]
        return made


"""
        + alter(PLAIN, ("class Memory:", "class Memory(metaclass=Watched):")),
        probe("out.append(memory.names)"),
    ),
    "a decorator that rewrites the class": (
        """\
def rewinding(cls):
    def rewind(self, n):
        self._used.sub_(n)
    cls.rewind = rewind
    return cls


@rewinding
"""
        + PLAIN,
        probe("memory.rewind(1)"),
    ),
    "a decorator of a method that reads the state": (
        """\
def counted(method):
    def inner(self, layer, keys):
        before = self._used.clone()
        method(self, layer, keys)
        self.fresh = (self._used - before).sum()
    return inner


"""
        + alter(PLAIN, ("    def append", "    @counted\n    def append")),
        probe("out.append(memory.fresh)"),
    ),
    "a method from outside": (
        PLAIN
        + """

def _rewind(self, n):
    self._used.sub_(n)


Memory.rewind = _rewind
Memory.total = lambda self: self._used.sum()
""",
        probe("memory.rewind(1)", "out.append(memory.total())"),
    ),
    "__setattr__ that watches": (
        alter(
            PLAIN,
            (
                "class Memory:\n",
                """\
class Memory:
    def __setattr__(self, name, value):
        if isinstance(value, torch.Tensor):
            self.__dict__.setdefault("names", []).append(name)
        super().__setattr__(name, value)

""",
            ),
        ),
        probe("out.append(memory.names)"),
    ),
    "__setattr__ that counts, and a counter that is assigned": (
        alter(
            SINGLE,
            (
                "class Memory:\n",
                """\
class Memory:
    sets = 0

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_used":
            Memory.sets += 1

""",
            ),
        ),
        probe("out.append(memory.sets)"),
    ),
    "__getattr__ that speaks to the tensor": (
        alter(
            PLAIN,
            more="""
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._used, name)
""",
        ),
        probe("out.append((memory.sum(), memory.dtype))"),
    ),
    "a descriptor of that name": (
        """\
class Clamped:
    def __set_name__(self, owner, name):
        self.name = name + "_"

    def __get__(self, owner, kind):
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, value.clamp(max=30) if isinstance(value, torch.Tensor) else value)


"""
        + alter(PLAIN, ("class Memory:\n", "class Memory:\n    _used = Clamped()\n\n")),
        probe("out.append(memory._used_)"),
    ),
    "slots that are walked over": (
        alter(
            PLAIN,
            ("class Memory:\n", 'class Memory:\n    __slots__ = ("_keys", "_used")\n\n'),
            more="""
    def clone(self):
        other = Memory.__new__(Memory)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name).clone())
        return other
""",
        ),
        probe("other = memory.clone()", "memory.append(0, rows(1))", "out.append(told(other))"),
    ),
    "a mangled name, known outside": (
        alter(PLAIN, ("_used", "__used"))
        + """

def total(memory):
    return memory._Memory__used.sum()
""",
        probe("out.append(total(memory))"),
    ),
    "a module with a plain tensor attribute": (
        alter(
            PLAIN,
            ("class Memory:", "class Memory(nn.Module):"),
            ("        self._keys = torch", "        super().__init__()\n        self._keys = torch"),
        ),
        probe("memory.double()", "memory.append(0, rows(1))"),
    ),
    "a module with a buffer": (
        alter(
            PLAIN,
            ("class Memory:", "class Memory(nn.Module):"),
            ("        self._keys = torch", "        super().__init__()\n        self._keys = torch"),
            ("self._used = " + MADE, 'self.register_buffer("_used", torch.zeros(layers, dtype=torch.int))'),
        ),
        probe("out.append(dict(memory.state_dict()))"),
    ),
    "a module with a buffer that is assigned": (
        alter(
            PLAIN,
            ("class Memory:", "class Memory(nn.Module):"),
            ("        self._keys = torch", "        super().__init__()\n        self._keys = torch"),
            ("self._used = " + MADE, 'self.register_buffer("_used", None)\n        self._used = ' + MADE),
        ),
        probe("out.append(dict(memory.state_dict()))"),
    ),
    "a cache that a module holds": (
        PLAIN
        + """

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
    for _ in range(2):
        for n in (3,) + (1,) * 12:
            for layer in range(2):
                out.append(net(layer, torch.linspace(-1, 1, 8 * n).view(2, n, 4)).clone())
        memory = getattr(net, "_orig_mod", net).memory
        out.append([memory.length(0), memory.length(1)])
        memory.reset()
    return out

def make(): return Net()
calls = [go]
""",
    ),
    "a cache that a module is given later": (
        PLAIN
        + """

class Net(nn.Module):
    def forward(self, layer, keys):
        self.memories[0].append(layer, keys)
        return self.memories[0][layer] * self.memories[0].length(layer)


def equip(net):
    setattr(net, "memories", [Memory(2, 2, 40, 4)])
""",
        """
def go(net):
    plain, out = getattr(net, "_orig_mod", net), []
    equip(plain)
    for _ in range(2):
        for n in (3,) + (1,) * 12:
            for layer in range(2):
                out.append(net(layer, torch.linspace(-1, 1, 8 * n).view(2, n, 4)).clone())
        plain.memories[0].reset()
    return out

def make(): return Net()
calls = [go]
""",
    ),
    "registered as a buffer of somebody else": (
        alter(
            PLAIN,
            more="""

class Net(nn.Module):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory
        self.register_buffer("used", memory._used)
""",
        ),
        probe("net = Net(memory)", "memory.append(0, rows(1))", "out.append(net.used)"),
    ),
    "del and hasattr": (
        alter(
            PLAIN,
            ("self._used.zero_()", "del self._used"),
            ("        start = self", "        self._ensure()\n        start = self"),
            ("        return int(", "        self._ensure()\n        return int("),
            ("        return self._keys", "        self._ensure()\n        return self._keys"),
            more="""
    def _ensure(self):
        if not hasattr(self, "_used"):
            self._used = torch.ones(2, dtype=torch.int)
""",
        ),
        probe(),
    ),
    "made or None": (
        alter(
            PLAIN,
            ("size):", "size, static=True):"),
            ("self._used = " + MADE, f"self._used = {MADE} if static else None"),
            (
                "return int(self._used[layer].item())",
                "return -1 if self._used is None else int(self._used[layer].item())",
            ),
            more="""
    def kind(self):
        return isinstance(self._used, torch.Tensor), torch.is_tensor(self._used), self._used is None
""",
        ),
        probe("out.append(memory.kind())", "out.append(Memory(2, 2, 40, 4, static=False).length(0))"),
    ),
    "branches that ask for the type": (
        alter(
            PLAIN,
            (
                "return int(self._used[layer].item())",
                "n = self._used[layer]\n        return n.item() if isinstance(n, torch.Tensor) else -n",
            ),
        ),
        probe(),
    ),
    "a match on the type": (
        alter(
            PLAIN,
            (
                "return int(self._used[layer].item())",
                """\
match self._used[layer]:
            case int():
                return -1
            case torch.Tensor() as n:
                return n.item()""",
            ),
        ),
        probe(),
    ),
    "hasattr for what tensors have": (
        alter(
            PLAIN,
            (
                "return int(self._used[layer].item())",
                'n = self._used[layer]\n        return n.item() if hasattr(n, "item") else -1',
            ),
        ),
        probe(),
    ),
}

#: A model ``Net`` whose ``forward`` uses ``MEMORY``; ``make`` is ``build``.
KEPT_RUN = """
def go(net):
    out = []
    for n in (3,) + (1,) * 12:
        for layer in range(2):
            out.append(net(layer, torch.linspace(-1, 1, 8 * n).view(2, n, 4)).clone())
    return out

def make(): return build()
calls = [go]
"""
#: How a module comes by its cache: what stands in ``Net`` and below it, and how ``forward`` finds it.
KEPT = {
    "a module that is given it": (
        "    def __init__(self, memory):\n        super().__init__()\n        self.memory = memory\n",
        "def build():\n    return Net(Memory(2, 2, 40, 4))\n",
        "self.memory",
    ),
    "a module that is given it, by a name": (
        "    def __init__(self, memory=None):\n        super().__init__()\n        self.memory = memory\n",
        "def build():\n    cache = Memory(2, 2, 40, 4)\n    return Net(memory=cache)\n",
        "self.memory",
    ),
    "a module that gets it by setattr": (
        "",
        'def build():\n    net = Net()\n    setattr(net, "memory", Memory(2, 2, 40, 4))\n    return net\n',
        "self.memory",
    ),
    "a dictionary of a module": (
        '    def __init__(self):\n        super().__init__()\n        self.kept = {"memory": Memory(2, 2, 40, 4)}\n',
        "def build():\n    return Net()\n",
        'self.kept["memory"]',
    ),
    "a list of a module": (
        "    def __init__(self):\n        super().__init__()\n        self.kept = []\n"
        "        self.kept.append(Memory(2, 2, 40, 4))\n",
        "def build():\n    return Net()\n",
        "self.kept[0]",
    ),
    "an attribute of the module's class": (
        "    memory = Memory(2, 2, 40, 4)\n",
        "def build():\n    return Net()\n",
        "self.memory",
    ),
    "an object that a module keeps": (
        "    def __init__(self):\n        super().__init__()\n        self.engine = Engine()\n",
        "class Engine:\n    def __init__(self):\n        self.memory = Memory(2, 2, 40, 4)\n\n\n"
        "def build():\n    return Net()\n",
        "self.engine.memory",
    ),
    "a property of a module": (
        "    def __init__(self):\n        super().__init__()\n        self._kept = None\n\n"
        "    @property\n    def memory(self):\n        return self._kept\n",
        "def fresh():\n    return Memory(2, 2, 40, 4)\n\n\n"
        "def build():\n    net = Net()\n    net._kept = fresh()\n    return net\n",
        "self.memory",
    ),
    "a class method that makes it": (
        "    def __init__(self):\n        super().__init__()\n        self.memory = Maker.make()\n",
        "class Maker:\n    @classmethod\n    def make(cls):\n        return Memory(2, 2, 40, 4)\n\n\n"
        "def build():\n    return Net()\n",
        "self.memory",
    ),
    "a global": (
        "",
        "MEMORY = Memory(2, 2, 40, 4)\n\n\ndef build():\n    MEMORY.reset()\n    return Net()\n",
        "MEMORY",
    ),
    "a closure": (
        "",
        "def build():\n    memory = Memory(2, 2, 40, 4)\n\n"
        "    def run(layer, keys):\n        memory.append(layer, keys)\n"
        "        return memory[layer] * memory.length(layer)\n\n    return run\n",
        "None",
    ),
    "an object whose method is compiled": (
        "",
        "class Engine:\n    def __init__(self):\n        self.memory = Memory(2, 2, 40, 4)\n\n"
        "    def run(self, layer, keys):\n        self.memory.append(layer, keys)\n"
        "        return self.memory[layer] * self.memory.length(layer)\n\n\ndef build():\n    return Engine().run\n",
        "None",
    ),
}
#: Each with a row, a number, and integers that a break follows.
KEPT_CASES: Cases = {}
for _name, (_inside, _below, _found) in KEPT.items():
    _net = f"""

class Net(nn.Module):
{_inside}
    def forward(self, layer, keys):
        memory = {_found}
        memory.append(layer, keys)
        return memory[layer] * memory.length(layer)


{_below}"""
    KEPT_CASES[f"{_name}, a row"] = (PLAIN + _net, KEPT_RUN)
    KEPT_CASES[f"{_name}, a number"] = (SINGLE + _net, KEPT_RUN)
    KEPT_CASES[f"{_name}, integers with a break"] = (INTS + _net, KEPT_RUN)
