"""The caches that the attacks are made from, and how they are run."""

from __future__ import annotations

from tests.dynamo import PREAMBLE

#: What is attacked -> (source, run).
Cases = dict[str, tuple[str, str]]

#: One entry a layer. Most attacks are this class with one thing changed.
PLAIN = """\
class Memory:
    def __init__(self, layers, batch, room, size):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = torch.zeros(layers, dtype=torch.int)

    def length(self, layer):
        return int(self._used[layer].item())

    def append(self, layer, keys):
        start = self._used[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._used[layer] = end

    def __getitem__(self, layer):
        return self._keys[layer, :, : self._used[layer]]

    def reset(self):
        self._used.zero_()
"""
#: One 0-d tensor for all layers, which are written together.
SINGLE = """\
class Memory:
    def __init__(self, layers, batch, room, size):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = torch.zeros((), dtype=torch.long)

    def length(self, layer):
        return self._used.item()

    def append(self, layer, keys):
        start = self._used.item()
        end = start + keys.shape[1]
        self._keys[:, :, start:end] = keys
        self._used.fill_(end)

    def __getitem__(self, layer):
        return self._keys[layer, :, : self._used]

    def reset(self):
        self._used.zero_()
"""
#: The same with a tensor of one element.
ONE = SINGLE.replace("torch.zeros(()", "torch.zeros((1,)").replace(": self._used]", ": self._used[0]]")
#: One 0-d tensor for each layer.
LIST = """\
class Memory:
    def __init__(self, layers, batch, room, size):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = [torch.zeros((), dtype=torch.long) for _ in range(layers)]

    def length(self, layer):
        return self._used[layer].item()

    def append(self, layer, keys):
        start = self._used[layer].item()
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._used[layer].fill_(end)

    def __getitem__(self, layer):
        return self._keys[layer, :, : self._used[layer]]

    def reset(self):
        for used in self._used:
            used.zero_()
"""
#: Python ints from the start, and a break behind the writes.
INTS = """\
class Memory:
    def __init__(self, layers, batch, room, size):
        self._keys = torch.zeros(layers, batch, room, size)
        self._used = [0] * layers

    def length(self, layer):
        return self._used[layer]

    def append(self, layer, keys):
        start = self._used[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        torch._dynamo.graph_break()
        self._used[layer] = end

    def __getitem__(self, layer):
        return self._keys[layer, :, : self._used[layer]]

    def reset(self):
        self._used = [0] * len(self._used)
"""
#: Annotations that all of the callers keep to.
TYPES = {
    "__init__(self, layers, batch, room, size)": "__init__(self, layers: int, batch: int, room: int, size: int)",
    "length(self, layer)": "length(self, layer: int)",
    "__getitem__(self, layer)": "__getitem__(self, layer: int)",
    "def append(self, layer, keys": "def append(self, layer: int, keys: torch.Tensor",
}

#: Steps over two layers, the case's own probe, and what the cache tells before and after a reset; twice.
RUN = """
def new():
    return Memory(2, 2, 40, 4)

def rows(n):
    return torch.linspace(-1, 1, 8 * n).view(2, n, 4)

def told(memory):
    return [[memory.length(i), memory[i].clone()] for i in range(2)]

def tried(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return "raised"

def step(memory, layer, keys):
    memory.append(layer, keys)
    past = memory[layer]
    return past * 2 + past.sum() * memory.length(layer)

def go(step):
    memory, out = new(), []
    for n in (3, 1, 2, 3):
        for layer in range(2):
            out.append(step(memory, layer, rows(n)))
    out.append(told(memory))
    PROBE
    out.append(told(memory))
    memory.reset()
    out.append(told(memory))
    out.append([step(memory, 0, rows(2)), told(memory)])
    return out

def make(): return step
calls = [go]
"""


def alter(source: str, *changes: tuple[str, str], more: str = "") -> str:
    """``source`` with each first text of ``changes`` turned into the second, and ``more`` behind it."""
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source + more


def probe(*lines: str, **changes: str) -> str:
    """`RUN` with ``lines`` in the place of its probe; ``rows_`` and the like replace a function of that name."""
    text = RUN.replace("PROBE", "\n    ".join("\n".join(lines).split("\n")) or "pass")
    for name, new in changes.items():
        assert f"def {name}(" in text
        text = text.replace("def go(", f"{new}\n\ndef go(")
    return text


START = "        start = self._used[layer]\n"
END = "        end = start + keys.shape[1]\n"
WRITE = "        self._keys[layer, :, start:end] = keys\n"
ADVANCE = "        self._used[layer] = end\n"
APPEND = START + END + WRITE + ADVANCE
MADE = "torch.zeros(layers, dtype=torch.int)"

BREAK = "        torch._dynamo.graph_break()\n"
KEYS = "        self._keys = torch.zeros(layers, batch, room, size)\n"

#: A shallow copy that can be seen.
FORK = """\
import copy


def fork(memory):
    return copy.copy(memory)


"""


def settled(source: str, typed: bool) -> str:
    """A whole file, with the annotations of `TYPES` or as it is written."""
    if typed:
        for old, new in TYPES.items():
            source = source.replace(old, new)
    return f"{PREAMBLE}\n\n{source}"
