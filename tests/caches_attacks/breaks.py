"""Graph breaks that are taken out, and marks on the buffers."""

from __future__ import annotations

from tests.caches_attacks.forms import BREAK, INTS, KEYS, Cases, alter, probe

#: Breaks.
BREAKS: Cases = {
    "a break that is the user's own function": (
        """\
BROKEN = []


def graph_break():
    BROKEN.append(1)


"""
        + alter(INTS, (BREAK, "        graph_break()\n")),
        probe("out.append(len(BROKEN))"),
    ),
    "a break that counts": (
        """\
BROKEN = []


def _break():
    BROKEN.append(1)
    torch._dynamo.graph_break()


"""
        + alter(INTS, (BREAK, "        _break()\n")),
        probe("out.append(len(BROKEN))"),
    ),
    "a guard with an effect": (
        """\
ASKED = []


def asked():
    ASKED.append(1)
    return torch.compiler.is_compiling()


"""
        + alter(INTS, (BREAK, "        if asked():\n            torch._dynamo.graph_break()\n")),
        probe("out.append(len(ASKED))"),
    ),
    "a walrus in the guard": (
        alter(
            INTS,
            (
                BREAK + "        self._used[layer] = end",
                """\
        if (busy := torch.compiler.is_compiling()):
            torch._dynamo.graph_break()
        self._used[layer] = end + 0 * busy""",
            ),
        ),
        probe(),
    ),
    "a break that is all that a block holds": (
        alter(
            INTS,
            (
                BREAK,
                """\
        try:
            torch._dynamo.graph_break()
        except Exception:
            raise
        else:
            torch._dynamo.graph_break()
        finally:
            torch._dynamo.graph_break()
        with torch.no_grad():
            torch._dynamo.graph_break()
        for _ in range(2):
            torch._dynamo.graph_break()
        if end > 3:
            torch._dynamo.graph_break()
        elif end > 2:
            torch._dynamo.graph_break()
        else:
            torch._dynamo.graph_break()
        self._pause()
""",
            ),
            more="""
    def _pause(self):
        torch._dynamo.graph_break()
""",
        ),
        probe(),
    ),
    "a break behind a semicolon, and in one line": (
        alter(
            INTS,
            (
                BREAK,
                """\
        torch._dynamo.graph_break(); keys = keys + 1
        if torch.compiler.is_compiling(): torch._dynamo.graph_break()
        self._keys[layer, :, start:end] = keys; torch._dynamo.graph_break()
""",
            ),
        ),
        probe(),
    ),
    "a break that is part of an expression": (
        alter(
            INTS,
            (
                BREAK + "        self._used[layer] = end",
                """\
        nothing = torch._dynamo.graph_break()
        end = end + (torch._dynamo.graph_break() or 0) if nothing is None else -1
        pause = lambda: torch._dynamo.graph_break()
        self._used[layer] = end if pause() is None else 0""",
            ),
        ),
        probe(),
    ),
    "a break with an effect in its argument": (
        """\
SAID = []


def said(text):
    SAID.append(text)
    return text


"""
        + alter(INTS, (BREAK, "        torch._dynamo.graph_break(msg=said('now'))\n")),
        probe("out.append(len(SAID))"),
    ),
    "a break with an else": (
        alter(
            INTS,
            (
                BREAK,
                """\
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        else:
            self.eager = getattr(self, "eager", 0) + 1
""",
            ),
        ),
        probe("out.append(memory.eager > 0)"),
    ),
    "a break that a subclass does something else in": (
        alter(
            INTS,
            (BREAK, "        self._pause()\n"),
            more="""
    def _pause(self):
        torch._dynamo.graph_break()


class Counting(Memory):
    paused = 0

    def _pause(self):
        self.paused += 1
""",
        ),
        probe("memory = Counting(2, 2, 40, 4)", "memory.append(0, rows(2))", "out.append(memory.paused)"),
    ),
    "an alias of the break that the module replaces": (
        """\
from torch._dynamo import graph_break as _pause

PAUSED = []


def quiet():
    global _pause
    _pause = lambda: PAUSED.append(1)


"""
        + alter(INTS, (BREAK, "        _pause()\n")),
        probe(
            "kept = _pause",
            "quiet()",
            "memory.append(0, rows(1))",
            "globals()['_pause'] = kept",
            "out.append(len(PAUSED))",
        ),
    ),
    "a break in front of something that needs it": (
        alter(
            INTS,
            (BREAK, BREAK + "        self.largest = keys.max().item()\n        print(end='')\n"),
        ),
        probe("out.append(memory.largest)"),
    ),
    "a list of ints that is shared": (
        "SHARED = [0, 0]\n\n\n"
        + alter(
            INTS,
            ("[0] * layers", "SHARED"),
            ("self._used = [0] * len(self._used)", "self._used[:] = [0] * len(self._used)"),
        ),
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "ints that are not always ints": (
        alter(
            INTS,
            more="""
    def seek(self, layer, n):
        self._used[layer] = n
""",
        ),
        probe("memory.seek(0, torch.tensor(3))", "memory.append(0, rows(1))", "out.append(memory.length(0))"),
    ),
}

#: Breaks that are more than breaks.
EFFECTS: Cases = {
    "a break in a function with a decorator": (
        """\
BROKEN = []


def counted(function):
    def inner():
        BROKEN.append(1)
        return function()
    return inner


@counted
def _break():
    torch._dynamo.graph_break()


"""
        + alter(INTS, (BREAK, "        _break()\n")),
        probe("out.append(len(BROKEN))"),
    ),
    "a method that breaks, replaced for one object": (
        alter(
            INTS,
            (
                "        self._keys = torch",
                "        self.paused = []\n        self._pause = lambda: self.paused.append(1)\n"
                "        self._keys = torch",
            ),
            (BREAK, "        self._pause()\n"),
            more="""
    def _pause(self):
        torch._dynamo.graph_break()
""",
        ),
        probe("out.append(len(memory.paused))"),
    ),
    "a method that breaks, replaced for the class": (
        alter(
            INTS,
            (BREAK, "        self._pause()\n"),
            more="""
    def _pause(self):
        torch._dynamo.graph_break()


PAUSED = []
Memory._pause = lambda self: PAUSED.append(1)
""",
        ),
        probe("out.append(len(PAUSED))"),
    ),
    "a method that breaks, defined again below": (
        alter(
            INTS,
            (BREAK, "        self._pause()\n"),
            more="""
    paused = 0

    def _pause(self):
        torch._dynamo.graph_break()

    def _count(self):
        self.paused += 1

    _pause = _count
""",
        ),
        probe("out.append(memory.paused)"),
    ),
    "a break that is imported from elsewhere in the method": (
        "import random\nfrom torch._dynamo import graph_break\n\n\n"
        + alter(INTS, (BREAK, "        from random import random as graph_break\n        graph_break()\n")),
        probe("random.seed(3)", "memory.append(0, rows(1))", "out.append(random.random())"),
    ),
    "PyTorch's own break, replaced": (
        """\
BROKEN = []


def watch():
    kept, torch._dynamo.graph_break = torch._dynamo.graph_break, lambda: BROKEN.append(1)
    return kept


"""
        + INTS,
        probe(
            "kept = watch()", "memory.append(0, rows(1))", "torch._dynamo.graph_break = kept", "out.append(len(BROKEN))"
        ),
    ),
    "a name for the break that a loop binds": (
        """\
BROKEN = []
for _pause in (torch._dynamo.graph_break, lambda: BROKEN.append(1)):
    pass


"""
        + alter(INTS, (BREAK, "        _pause()\n")),
        probe("out.append(len(BROKEN))"),
    ),
    "a class that is called like a break": (
        """\
from torch._dynamo import graph_break

BROKEN = []


class graph_break:
    def __init__(self):
        BROKEN.append(1)


"""
        + alter(INTS, (BREAK, "        graph_break()\n")),
        probe("out.append(len(BROKEN))"),
    ),
}

#: The addresses of the buffers.
ADDRESSES: Cases = {
    "two buffers in one memory": (
        alter(
            INTS,
            (KEYS, "        self._keys = self._values = torch.zeros(layers, batch, room, size)\n"),
            (BREAK, "        self._values[layer, :, start:end] += keys\n"),
        ),
        probe(),
    ),
    "a buffer that is a view of another": (
        alter(
            INTS,
            (
                KEYS,
                """\
        both = torch.zeros(2, layers, batch, room, size)
        self._keys, self._values = both[0], both[1]
        self._both = both
""",
            ),
            (BREAK, "        self._values[layer, :, start:end] = keys * 2\n"),
            more="""
    def both(self):
        return self._both
""",
        ),
        probe("out.append(memory.both())"),
    ),
    "a buffer for all layers, many times in a list": (
        alter(
            INTS,
            (KEYS, "        self._keys = [torch.zeros(batch, room, size)] * layers\n"),
            ("self._keys[layer, :,", "self._keys[layer][:,"),
        ),
        probe(),
    ),
    "a buffer from the caller": (
        alter(
            INTS,
            ("room, size):", "room, size, keys=None):"),
            (KEYS, "        self._keys = torch.zeros(layers, batch, room, size) if keys is None else keys\n"),
        ),
        probe(
            "keys = torch.zeros(2, 2, 40, 4)",
            "memory = Memory(2, 2, 40, 4, keys)",
            "memory.append(0, rows(2))",
            "out.append(keys)",
        ),
    ),
    "a buffer that is made anew for each call": (
        alter(
            INTS,
            (
                "        self._keys[layer, :, start:end] = keys\n",
                """\
        fresh = torch.zeros_like(self._keys)
        fresh.copy_(self._keys)
        self._keys = fresh
        self._keys[layer, :, start:end] = keys
""",
            ),
        ),
        probe(),
    ),
    "a buffer that is made when it is first needed": (
        alter(
            INTS,
            (KEYS, "        self._keys = None\n        self._sizes = (layers, batch, room, size)\n"),
            (
                "        start = self",
                """\
        if self._keys is None: self._keys = torch.zeros(self._sizes, dtype=keys.dtype); self._made = 1
        start = self""",
            ),
        ),
        probe(),
    ),
    "a buffer that a property turns into another": (
        alter(
            INTS,
            ("self._keys = torch", "self.keys = torch"),
            more="""
    @property
    def keys(self):
        return self._keys

    @keys.setter
    def keys(self, value):
        self._keys = value + 0
""",
        ),
        probe("memory.keys = memory.keys", "memory.append(0, rows(1))"),
    ),
    "a copy of a buffer knows what the buffer knew": (
        "import copy\nimport pickle\n\n\n" + alter(INTS, (BREAK, "")),
        probe(
            "other = pickle.loads(pickle.dumps(copy.deepcopy(memory)))",
            "other.append(0, rows(1))",
            "out.append(told(other))",
        ),
    ),
    "a cache that compiled code makes": (
        alter(INTS, (BREAK, ""))
        + """

def fresh(keys):
    memory = Memory(2, 2, 40, 4)
    memory.append(0, keys)
    return memory[0] * memory.length(0)
""",
        """
def make(): return fresh
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (3, 1, 2, 4)]
""",
    ),
    "a buffer under inference mode": (
        alter(INTS, (BREAK, "")),
        probe(
            "with torch.inference_mode():\n    other = new()\n    other.append(0, rows(3))", "out.append(told(other))"
        ),
    ),
}
