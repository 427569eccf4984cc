"""Who else may see the attributes of an object, and what keeps it: as told by a few lines of other code each."""

from __future__ import annotations

import ast

import pytest

from patcher.facts import Facts
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.tensor_state.exposure import Exposure
from patcher.settings import Settings

MEMORY = """\
import torch
import torch.nn as nn


class Memory:
    def __init__(self, layers):
        self._used = torch.zeros(layers, dtype=torch.int)
        self.seen = torch.zeros(layers, dtype=torch.int)

    def length(self, layer):
        return int(self._used[layer])


class Engine:
    def __init__(self, model, memory):
        self.model = model
        self.memory = memory

    def run(self, x):
        return self.model(x, self.memory)
"""
NET = """
class Net(nn.Module):
    def __init__(self, memory=None):
        super().__init__()
        self.memory = memory

    def forward(self, x, memory=None):
        return x
"""


def exposure(source: str, *others: str) -> Exposure:
    files = [source, *others]
    tree = ast.parse(source)
    project = Project([summarise(ast.parse(text), f"file{i}.py") for i, text in enumerate(files)])
    cls = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "Memory")
    return Exposure(Facts(tree, "file0.py", project, Settings(), frozenset()), cls)


def other(source: str) -> str:
    return (
        f"import copy\nimport pickle\nimport torch\nimport torch.nn as nn\nfrom file0 import Engine, Memory\n\n{source}"
    )


KEPT = {
    "an element of a global": (
        "CACHES = {}\n\n\ndef fill():\n    CACHES['a'] = Memory(2)\n\n\ndef get():\n    return CACHES['a']\n"
        "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return get().length(0)\n"
    ),
    "in a global list": (
        "CACHES = []\n\n\ndef fill():\n    CACHES.append(Memory(2))\n"
        "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return CACHES[-1].length(0)\n"
    ),
    "built in an initialiser": "class Net(nn.Module):\n    def __init__(self):\n        self.memory = Memory(2)\n",
    "in a list": "class Net(nn.Module):\n    def fill(self):\n        self.memories = [Memory(2) for _ in range(2)]\n",
    "appended": "class Net(nn.Module):\n    def add(self):\n        self.memories.append(Memory(2))\n",
    "an annotated parameter": "class Net(nn.Module):\n    def keep(self, m: Memory):\n        self.memory = m\n",
    "an annotation in quotes": 'class Net(nn.Module):\n    def keep(self, m: "Memory"):\n        self.memory = m\n',
    "a field": "class Net(nn.Module):\n    memory: Memory\n",
    "an attribute of the class": "class Net(nn.Module):\n    memory = Memory(2)\n",
    "an argument of the constructor": f"{NET}\nnet = Net(Memory(2))\n",
    "a keyword, through a name": f"{NET}\ndef build():\n    cache = Memory(2)\n    return Net(memory=cache)\n",
    "an initialiser that is inherited": f"{NET}\nclass Big(Net):\n    pass\n\nnet = Big(Memory(2))\n",
    "an initialiser that calls that of its base": (
        f"{NET}\nclass Big(Net):\n    def __init__(self, n, memory):\n        super().__init__(memory)\n\n"
        "net = Big(2, Memory(2))\n"
    ),
    "arguments in a list": f"{NET}\nmade = [Memory(2)]\nnet = Net(*made)\n",
    "setattr": f'{NET}\ndef build():\n    net = Net()\n    setattr(net, "memory", Memory(2))\n',
    "past nn.Module's own way": (
        'class Net(nn.Module):\n    def __init__(self):\n        object.__setattr__(self, "memory", Memory(2))\n'
    ),
    "an object in between": (
        "class Net(nn.Module):\n    def __init__(self, model):\n        self.engine = Engine(model, Memory(2))\n"
    ),
    "a dataclass in between": (
        "from dataclasses import dataclass\n\n@dataclass\nclass State:\n    memory: object\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        self.state = State(Memory(2))\n"
    ),
    "a factory": (
        "def fresh():\n    return Memory(2)\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        self.memory = fresh()\n"
    ),
    "a factory of a factory": (
        "def fresh():\n    memory = Memory(2)\n    return memory\n\ndef make():\n    return fresh()\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        self.memory = make()\n"
    ),
    "an instance of a subclass": f"{NET}\nclass Big(Memory):\n    pass\n\nnet = Net(Big(2))\n",
    "a class method": (
        "class Some(Memory):\n    @classmethod\n    def of(cls, n):\n        return cls(n)\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        self.memory = Some.of(2)\n"
    ),
    "a global": (
        "MEMORY = Memory(2)\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x * MEMORY.length(0)\n"
    ),
    "a global that a function sets": (
        "CURRENT = None\n\ndef start():\n    global CURRENT\n    CURRENT = Memory(2)\n\n"
        "class Net(nn.Module):\n    def forward(self, x):\n        return x * CURRENT.length(0)\n"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    assert list(exposure(MEMORY, other(KEPT[name])).kept())


@pytest.mark.parametrize("name", KEPT)
def test_kept_in_the_same_file(name: str) -> None:
    assert list(exposure(f"{MEMORY}\n\n{KEPT[name]}").kept())


NOT_KEPT = {
    "an argument of the model": f"{NET}\ndef main():\n    net = Net()\n    memory = Memory(2)\n    net(1, memory)\n",
    "a script": f"{NET}\nnet = Net()\nmemory = Memory(2)\nfor _ in range(3):\n    net(1, memory)\n",
    "an engine that no module keeps": f"{NET}\ndef main():\n    return Engine(Net(), Memory(2)).run(1)\n",
    "an attribute of a plain object": (
        f"{NET}\nclass Run:\n    def __init__(self):\n        self.net = Net()\n        self.memory = Memory(2)\n"
    ),
    "given to a function that keeps something else": (
        f"{NET}\ndef run(net, memory, n):\n    net.n = n\n    return net(1, memory)\n\nrun(Net(), Memory(2), 3)\n"
    ),
    "a number of it": (
        "class Net(nn.Module):\n    def __init__(self, layers):\n        self.layers = layers\n\n"
        "def main():\n    memory = Memory(2)\n    return Net(memory.length(0))\n"
    ),
    "a local of the name of a global": (
        f"{NET}\nmemory = Memory(2)\n\nclass Other(nn.Module):\n    def forward(self, x):\n"
        "        memory = x + 1\n        return memory\n"
    ),
    "a global that only the host reads": f"{NET}\nMEMORY = Memory(2)\n\ndef main():\n    return Net()(1, MEMORY)\n",
    "an attribute of a plain object, from outside": (
        f"{NET}\nclass Run:\n    pass\n\nrun = Run()\nrun.net = Net()\nrun.memory = Memory(2)\n"
    ),
    "another class of a module": f"{NET}\nclass Other:\n    pass\n\nnet = Net(Other())\nmemory = Memory(2)\n",
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_not_kept(name: str) -> None:
    assert not list(exposure(MEMORY, other(NOT_KEPT[name])).kept())


@pytest.mark.parametrize("name", NOT_KEPT)
def test_not_kept_in_the_same_file(name: str) -> None:
    assert not list(exposure(f"{MEMORY}\n\n{NOT_KEPT[name]}").kept())


SEEN = {
    "read": "def f(m):\n    return m._used.sum()\n",
    "read of something called config": "class A:\n    def f(self):\n        return self.config._used\n",
    "assigned": "def f(m, t):\n    m._used = t\n",
    "getattr": 'def f(m):\n    return getattr(m, "_used")\n',
    "getattr by a name that is made up": "def f(m, name):\n    return getattr(m, name)\n",
    "__getattribute__": 'def f(m):\n    return object.__getattribute__(m, "seen")\n',
    "a name in a table": 'NAMES = ["_used"]\n',
    "a format": 'def f(m):\n    return "{0._used}".format(m)\n',
    "a format, deeper": 'def f(m):\n    return "{m.owner[0].seen}".format(m=m)\n',
    "a pattern": "def f(m):\n    match m:\n        case Memory(seen=s):\n            return s\n",
    "vars": "def f(m):\n    return vars(m)\n",
    "a copy": "def f(m):\n    return copy.copy(m)\n",
    "a copy by a function that is handed on": "def f(ms):\n    return list(map(copy.copy, ms))\n",
    "a pickle": "def f(m):\n    return pickle.dumps(m)\n",
    "a subclass": "class B(Memory):\n    def f(self):\n        self._used.sub_(1)\n",
    "a subclass of another name of it": "Base = Memory\n\nclass B(Base):\n    def f(self):\n        self._used += 1\n",
    "a subclass of what a function gives": (
        "def make(base):\n    class B(base):\n        def f(self):\n            self._used.sub_(1)\n    return B\n"
    ),
    "a method from outside": "Memory.f = lambda self: self._used.sum()\n",
    "a function that becomes a method": "def f(self):\n    return self._used.sum()\n",
    "TorchScript": "@torch.jit.script\ndef f(m: Memory):\n    return m.length(0)\n",
}


@pytest.mark.parametrize("name", SEEN)
def test_seen(name: str) -> None:
    assert list(exposure(MEMORY, other(SEEN[name])).reasons({"_used", "seen"}))


UNSEEN = {
    "its methods": "def f(m):\n    return m.length(0)\n",
    "another attribute": "def f(m):\n    return m.used.sum()\n",
    "a copy of something else": "import other\n",
    "configuration": "class A:\n    def f(self):\n        return self.config.seen\n",
    "braces in a text": 'TEXT = "{seen} and {_used} of {0}"\n',
}


@pytest.mark.parametrize("name", UNSEEN)
def test_unseen(name: str) -> None:
    assert not list(exposure(MEMORY, other(UNSEEN[name])).reasons({"_used", "seen"}))


@pytest.mark.parametrize("options", ["unsafe_hash=True", "order=True", "frozen=True", "**OPTIONS"])
def test_what_a_dataclass_does_with_its_fields(options: str) -> None:
    source = f"import dataclasses\n{MEMORY.replace('class Memory', f'@dataclasses.dataclass({options})@class Memory')}"
    assert list(exposure(source.replace(")@", ")\n")).reasons({"_used"}))


def test_a_plain_dataclass() -> None:
    source = f"import dataclasses\n{MEMORY.replace('class Memory', '@dataclasses.dataclass@class Memory')}"
    assert not list(exposure(source.replace("@class", "\nclass")).reasons({"_used"}))


def test_a_name_that_tensors_have() -> None:
    assert list(exposure(MEMORY.replace("_used", "data")).reasons({"data"}))
    assert not list(exposure(MEMORY).reasons({"_used"}))


@pytest.mark.parametrize(
    "opening", ["copy.copy(o)", "copy.copy(o[0])", "vars(o)", "o.__dict__", "getattr(o, name)", "map(copy.copy, o)"]
)
def test_a_module_beside_that_never_names_the_class(opening: str) -> None:
    source = f"import copy\n\n\ndef fork(o, name):\n    return {opening}\n"
    assert list(exposure(MEMORY, source).reasons(["_used"]))
    harmless = source.replace("(o", "(config").replace(" o._", " config._").replace(", o)", ", config)")
    if "map" not in opening:
        assert not list(exposure(MEMORY, harmless).reasons(["_used"]))
