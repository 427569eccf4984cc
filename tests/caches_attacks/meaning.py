"""What tensors and numbers do differently, and how that may be written."""

from __future__ import annotations

from tests.caches_attacks.forms import (
    ADVANCE,
    APPEND,
    END,
    LIST,
    MADE,
    ONE,
    PLAIN,
    SINGLE,
    START,
    WRITE,
    Cases,
    alter,
    probe,
)

#: What tensors and numbers do differently.
DIFFERENT: Cases = {
    "uint8 wraps round": (
        alter(
            PLAIN,
            ("dtype=torch.int)", "dtype=torch.uint8)"),
            (APPEND, "        self._used[layer] += 100\n"),
            ("self._keys[layer, :, : self._used[layer]]", "self._keys[layer, :, : int(self._used[layer]) % 40]"),
        ),
        probe(),
    ),
    "int8 wraps round in a real cache": (
        alter(
            PLAIN, ("dtype=torch.int)", "dtype=torch.int8)"), (ADVANCE, "        self._used[layer] += keys.shape[1]\n")
        ),
        probe(
            "memory = Memory(2, 2, 300, 4)",
            "for n in (100, 27, 1):\n    out.append((tried(memory.append, 0, rows(n)), memory.length(0)))",
        ),
    ),
    "a bool tensor that is added to": (
        alter(
            PLAIN,
            ("dtype=torch.int)", "dtype=torch.bool)"),
            (ADVANCE, "        self._used[layer] |= keys.shape[1] > 2\n"),
            (": self._used[layer]]", ": int(self._used[layer])]"),
            (START, "        start = int(self._used[layer])\n"),
        ),
        probe(),
    ),
    "a float tensor": (
        alter(
            PLAIN,
            (", dtype=torch.int)", ")"),
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            ("        start = self._used[layer]", "        start = int(self._used[layer])"),
            (": self._used[layer]]", ": int(self._used[layer])]"),
        ),
        probe(),
    ),
    "a dtype that is an argument": (
        alter(
            PLAIN,
            ("room, size):", "room, size, dtype=torch.float64):"),
            ("dtype=torch.int", "dtype=dtype"),
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            ("        start = self._used[layer]", "        start = int(self._used[layer])"),
            (": self._used[layer]]", ": int(self._used[layer])]"),
        ),
        probe(),
    ),
    "torch.full of a float, of a bool": (
        alter(
            PLAIN,
            (MADE, "torch.full((layers,), 0.0)"),
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            ("        start = self._used[layer]", "        start = int(self._used[layer])"),
            (": self._used[layer]]", ": int(self._used[layer])]"),
        ),
        probe(),
    ),
    "a start that is an argument": (
        alter(
            PLAIN, ("room, size):", "room, size, first=2.0):"), (MADE, "torch.full((layers,), first, dtype=torch.int)")
        ),
        probe(),
    ),
    "a start that is read from an argument": (
        alter(PLAIN, ("room, size):", "room, size, first=(1, 2.7)):"), (MADE, "torch.tensor(first, dtype=torch.int)")),
        probe(),
    ),
    "a float amount is cut off": (
        alter(PLAIN, (ADVANCE, "        self._used[layer] = start + keys.shape[1] / 2\n")),
        probe(),
    ),
    "a float amount from an attribute": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self.pace = 1.5\n        self._used = torch"),
            (ADVANCE, "        self._used[layer] = start + keys.shape[1] * self.pace\n"),
        ),
        probe(),
    ),
    "an amount from an attribute that others set": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self.pace = 1\n        self._used = torch"),
            (ADVANCE, "        self._used[layer] = int(start) + keys.shape[1] * self.pace\n"),
        ),
        probe("memory.pace = 1.5", "memory.append(0, rows(1))"),
    ),
    "a float amount raises when it is added": (
        alter(
            PLAIN,
            more="""
    def skip(self, layer):
        self._used[layer] += 0.5
""",
        ),
        probe("out.append(tried(memory.skip, 0))"),
    ),
    "numpy amounts": (
        "import numpy as np\n\n\n"
        + alter(
            PLAIN,
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            ("start + keys.shape[1]", "int(start) + np.prod(keys.shape[1:2])"),
        ),
        probe(),
    ),
    "an amount from the caller, a tensor that lives on": (
        alter(
            PLAIN,
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            more="""
    def set(self, layer, n):
        self._used[layer] = n
""",
        ),
        probe("n = torch.tensor(2)", "memory.set(0, n)", "n += 1", "memory.append(0, rows(1))", "out.append(n)"),
    ),
    "an amount from the caller, a float": (
        alter(
            PLAIN,
            more="""
    def set(self, layer, n):
        self._used[layer] = n
""",
        ),
        probe("memory.set(0, 2.7)", "memory.append(0, rows(1))"),
    ),
    "an amount that is said to be an int, and is a tensor": (
        alter(
            PLAIN,
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            more="""
    def set(self, layer, n: int):
        self._used[layer] = n
""",
        ),
        probe("n = torch.tensor(2)", "memory.set(0, n)", "n += 1", "memory.append(0, rows(1))"),
    ),
    "an amount from tensor data": (
        alter(
            PLAIN,
            ("(self, layer, keys)", "(self, layer, keys, lengths=torch.tensor([1, 2]))"),
            (ADVANCE, "        self._used[layer] += lengths[layer]\n"),
        ),
        probe(),
    ),
    "a tensor's element is stored, and changes later": (
        alter(
            PLAIN,
            more="""
    def set(self, lengths):
        for i in range(2):
            self._used[i] = lengths[i]
""",
        ),
        probe("lengths = torch.tensor([1, 2])", "memory.set(lengths)", "lengths += 5"),
    ),
    "room is a tensor or a numpy number": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self.room = room\n        self._used = torch"),
            ("end = start + keys.shape[1]", "end = min(start + keys.shape[1], self.room)"),
            ("= keys\n", "= keys[:, : end - start]\n"),
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
        ),
        probe(
            "memory = Memory(2, 2, torch.tensor(5), 4)",
            "memory.append(0, rows(4))",
            "memory.append(0, rows(4))",
            "memory.room += 1",
        ),
    ),
    "room is a numpy number": (
        "import numpy as np\n\n\n"
        + alter(
            PLAIN,
            ("        self._used = torch", "        self.room = room\n        self._used = torch"),
            ("end = start + keys.shape[1]", "end = min(int(start) + keys.shape[1], self.room)"),
            ("= keys\n", "= keys[:, : end - int(start)]\n"),
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
        ),
        probe("memory = Memory(2, 2, np.int64(5), 4)", "memory.append(0, rows(4))", "memory.append(0, rows(4))"),
    ),
    "a shape where a number is expected": (
        alter(
            SINGLE,
            ("torch.zeros(layers, batch, room, size)", "torch.zeros(2, batch, room, size)"),
            ("torch.zeros(()", "torch.zeros(layers"),
        ),
        probe(
            "for shape in ((), (1,), 1, (1, 1), torch.Size([1])):\n"
            "    m = Memory(shape, 2, 40, 4)\n    m.append(0, rows(2))\n    out.append([m.length(0), m._keys.clone()])"
        ).replace("Memory(2, 2, 40, 4)", "Memory((), 2, 40, 4)"),
    ),
    "no layers at all": (
        PLAIN,
        probe(
            "empty = Memory(0, 2, 40, 4)",
            "empty.reset()",
            "out.append((tried(empty.length, 0), tried(lambda: Memory(-1, 2, 40, 4))))",
        ),
    ),
    "layers is a tensor": (
        PLAIN,
        probe("memory = Memory(torch.tensor(2), 2, 40, 4)", "memory.append(1, rows(2))"),
    ),
    "several layers at once": (
        alter(
            PLAIN,
            more="""
    def shift(self, layers, by):
        self._used[layers] += by
""",
        ),
        probe(
            "for layers in (0, slice(None), [0, 1], torch.tensor([0, 1]), torch.tensor([True, False]), ..., -1):\n"
            "    memory.shift(layers, 1)\n    out.append(memory.length(0))"
        ),
    ),
    "all layers at once": (
        alter(
            PLAIN,
            more="""
    def shift(self, by):
        self._used += by
        self._used[1:] -= 1
        self._used[:] = self._used + 1
        self._used = self._used * 2 - self._used
""",
        ),
        probe("memory.shift(3)"),
    ),
    "the truth of one element": (
        alter(
            ONE,
            more="""
    def state(self):
        return [bool(self._used), not self._used, 1 if self._used else 2, (self._used or 5) is self._used]
""",
        ),
        probe("out.append(memory.state())", "memory.reset()", "out.append(memory.state())"),
    ),
    "a test of one element": (
        alter(
            ONE,
            (
                "        self._used.fill_(end)",
                "        if self._used:\n            keys = keys + 1\n"
                "        self._keys[:, :, start:end] = keys\n        self._used.fill_(end)",
            ),
        ),
        probe(),
    ),
    "item of more than one element raises": (
        alter(
            PLAIN,
            more="""
    def only(self):
        try:
            return self._used.item()
        except (RuntimeError, ValueError):
            return -1
""",
        ),
        probe("out.append(memory.only())"),
    ),
    "division by zero is infinite": (
        alter(
            PLAIN,
            more="""
    def pace(self, layer):
        return float(1 / self._used[layer])
""",
        ),
        probe("memory.reset()", "out.append(tried(memory.pace, 0))"),
    ),
    "a remainder of zero, caught by its kind": (
        alter(
            PLAIN,
            more="""
    def turn(self, layer, n):
        try:
            return int(self._used[layer] // n)
        except ZeroDivisionError:
            return -1
        except RuntimeError:
            return -2
""",
        ),
        probe("out.append((memory.turn(0, 2), memory.turn(0, 0)))"),
    ),
    "the message of an assertion": (
        alter(
            PLAIN,
            (END, END + "        assert end <= self._keys.shape[2], (end, f'{end} of {self._keys.shape[2]}')\n"),
            more="""
    def complaint(self):
        try:
            self.append(0, torch.zeros(2, 99, 4))
        except AssertionError as error:
            return repr(error.args)
""",
        ),
        probe("out.append(memory.complaint())"),
    ),
    "print and logging": (
        "import contextlib\nimport io\nimport logging\n\n\n"
        + alter(
            PLAIN,
            more="""
    def show(self):
        print(self._used, self._used[0])
        print("%s" % self._used[0])
""",
        ),
        probe(
            "with contextlib.redirect_stdout(io.StringIO()) as text:\n    memory.show()", "out.append(text.getvalue())"
        ),
    ),
    "equality and hash": (
        alter(
            PLAIN,
            more="""
    def __eq__(self, other):
        return torch.equal(self._used, other._used) and (self._used == other._used).all().item()

    def __hash__(self):
        return hash(tuple(self._used.tolist()))
""",
        ),
        probe("other = new()", "out.append((memory == memory, memory == other, hash(memory) == hash(other)))"),
    ),
    "places that stay a tensor": (
        alter(
            PLAIN,
            (
                WRITE,
                "        places = torch.arange(keys.shape[1]) + self._used[layer]\n"
                "        self._keys[layer, :, places] = keys\n",
            ),
            more="""
    def mask(self, layer):
        return torch.arange(40) < self._used[layer], torch.arange(40) < self._used[:, None]
""",
        ),
        probe("out.append(memory.mask(0))"),
    ),
    "uint8 as an index is a mask": (
        alter(
            SINGLE,
            ("dtype=torch.long)", "dtype=torch.uint8)"),
            more="""
    def row(self):
        return self._keys[:, :, self._used]
""",
        ),
        probe("memory.reset()", "out.append(memory.row())", "memory.append(0, rows(1))", "out.append(memory.row())"),
    ),
    "an index of one element keeps the dimension, and is a copy": (
        alter(
            ONE,
            more="""
    def row(self):
        return self._keys[:, :, self._used], self._keys[:, :, self._used[0]]
""",
        ),
        probe("row = memory.row()", "memory._keys += 1", "out.append(row)"),
    ),
    "a negative length": (
        alter(
            PLAIN,
            more="""
    def crop(self, layer, n):
        self._used[layer] -= n
""",
        ),
        probe("memory.crop(0, 12)", "out.append((told(memory), memory[0].shape))", "memory.crop(0, -3)"),
    ),
    "crop to a length, and to one from the end": (
        alter(
            PLAIN,
            more="""
    def crop(self, length):
        if length < 0:
            length = int(self._used.max()) - abs(length)
        self._used.clamp_(max=length)
""",
        ),
        probe("memory.crop(-2)", "memory.append(0, rows(2))", "memory.crop(4)"),
    ),
    "resized, repeated, reordered": (
        alter(
            PLAIN,
            more="""
    def reorder(self, order):
        self._used = self._used.index_select(0, order)
        self._keys = self._keys[order]

    def grow(self):
        self._used = torch.cat([self._used, self._used.new_zeros(1)])
        return len(self._used)
""",
        ),
        probe("memory.append(0, rows(2))", "memory.reorder(torch.tensor([1, 0]))", "out.append(memory.grow())"),
    ),
    "lengths of samples": (
        alter(
            PLAIN,
            more="""
    def keep(self, mask):
        self._used[mask] = 0
        self._used[self._used > 5] -= 1
        self._used.index_add_(0, torch.tensor([0, 0]), torch.tensor([1, 1], dtype=torch.int))
""",
        ),
        probe("memory.keep(torch.tensor([True, False]))"),
    ),
    "slices that are assigned": (
        alter(
            PLAIN,
            more="""
    def set(self):
        self._used[:] = 3
        self._used[5:7] = 1
        self._used[1:] = self._used[:1]
        self._used[...] += 1
        self._used[None] += 1
""",
        ),
        probe("memory.set()"),
    ),
    "iteration over one tensor, unpacked": (
        alter(
            PLAIN,
            more="""
    def both(self):
        first, second = self._used
        a, *rest = self._used
        self._used += 1
        return int(first), int(second), int(a), len(rest), [*self._used][0].item()
""",
        ),
        probe("out.append(memory.both())"),
    ),
}

#: How it is written, and what happens in between.
WRITTEN: Cases = {
    "an error halfway": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = int(self._used[layer])
        self._used[layer] += keys.shape[1]
        self._keys[layer, :, start : start + keys.shape[1]] = keys
""",
            ),
        ),
        probe(
            "out.append(tried(memory.append, 0, torch.zeros(7, 1, 4)))", "out.append(tried(memory.append, 5, rows(1)))"
        ),
    ),
    "try and finally": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = int(self._used[layer])
        try:
            self._used[layer] = start + keys.shape[1]
            self._keys[layer, :, start : self._used[layer]] = keys
        except RuntimeError:
            self._used[layer] = start
            raise
        finally:
            self.calls = getattr(self, "calls", 0) + 1
""",
            ),
        ),
        probe("out.append(tried(memory.append, 0, torch.zeros(7, 1, 4)))", "out.append(memory.calls)"),
    ),
    "a context manager that restores a view": (
        "import contextlib\n\n\n"
        + alter(
            PLAIN,
            more="""
    @contextlib.contextmanager
    def ahead(self, layer):
        before = self._used[layer]
        saved = self._used[layer].clone()
        yield
        self.moved = int(before) - int(saved)
        self._used[layer] = saved
""",
        ),
        probe("with memory.ahead(0):\n    memory.append(0, rows(2))", "out.append(memory.moved)"),
    ),
    "a method that calls itself for the rest": (
        alter(
            PLAIN,
            (
                START,
                "        start = self._used[layer]\n        if keys.shape[1] > 2:\n"
                "            self.append(layer, keys[:, :2])\n            keys = keys[:, 2:]\n",
            ),
        ),
        probe("memory.append(0, rows(7))"),
    ),
    "an amount with an effect, for all layers": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self.pending = [1, 2, 3]\n        self._used = torch"),
            more="""
    def settle(self):
        self._used += self.pending.pop()
        self._used += len(self.pending)
""",
        ),
        probe("memory.settle()", "out.append(memory.pending)"),
    ),
    "names that a rewrite might take": (
        alter(
            PLAIN,
            more="""
    def shift(self, n: int, i: int = 2, used: int = 1, value: int = 1, x: int = 1, _: int = 1):
        self._used += n
        self._used -= i
        self._used += used
        self._used += value
        self._used += x
        self._used += _
        _used = count = k = v = e = element = item = 1
        self._used += _used + count + k + v + e + element + item
""",
        ),
        probe("memory.shift(3)"),
    ),
    "builtins of the module's own": (
        """\
SEEN = []


def len(value):
    SEEN.append("len")
    return 1


def list(value):
    SEEN.append("list")
    return value


def int(value):
    SEEN.append("int")
    return value


def max(*values):
    SEEN.append("max")
    return 0


def range(n):
    return (0,)


def sum(values):
    return 0


"""
        + alter(
            PLAIN,
            more="""
    def told(self):
        self._used += 1
        return self._used.max().item(), self._used.sum().item(), self._used.tolist(), self._used.numel()
""",
        ),
        probe("out.append((memory.told(), SEEN[:3]))")
        .replace("in range(2)]", "in (0, 1)]")
        .replace("in range(2):", "in (0, 1):"),
    ),
    "int is somebody else's, in the module's scope": (
        """\
def int(value):
    return value + 1


"""
        + PLAIN,
        probe(),
    ),
    "torch.zeros of its own": (
        """\
class Pool:
    long = int = torch.long
    shared = torch.zeros(2, dtype=torch.long)

    def zeros(self, *sizes, dtype=None):
        return self.shared if dtype else torch.zeros(*sizes)


pool = Pool()


"""
        + alter(PLAIN, ("torch.zeros", "pool.zeros")),
        probe("other = new()", "out.append(other.length(0))"),
    ),
    "an effect in what makes it": (
        """\
import itertools

SERIAL = itertools.count()


"""
        + alter(PLAIN, (MADE, "torch.zeros(layers + 0 * next(SERIAL), dtype=torch.int)")),
        probe("new()", "out.append(next(SERIAL))"),
    ),
    "a thread that advances it": (
        "import threading\n\n\n"
        + alter(
            PLAIN,
            more="""
    def later(self):
        thread = threading.Thread(target=self._used.add_, args=(1,))
        thread.start()
        thread.join()
""",
        ),
        probe("memory.later()"),
    ),
    "threads with a cache each": (
        "import threading\n\n\n" + PLAIN,
        probe(
            "many = [new() for _ in range(4)]",
            "threads = [threading.Thread(target=m.append, args=(0, rows(i))) for i, m in enumerate(many)]",
            "for t in threads: t.start()",
            "for t in threads: t.join()",
            "out.append([told(m) for m in many])",
        ),
    ),
    "meta tensors and a device of the caller's": (
        alter(
            PLAIN,
            ("room, size):", "room, size, device=None):"),
            ("dtype=torch.int)", "dtype=torch.int, device=device)"),
        ),
        probe(
            "empty = Memory(2, 2, 40, 4, device='meta')",
            "out.append(len(told(Memory(2, 2, 40, 4, device='cpu'))))",
        ),
    ),
    "inference mode": (
        PLAIN,
        probe(
            "with torch.inference_mode():\n    other = new()\n    other.append(0, rows(3))",
            "out.append((tried(other.append, 0, rows(1)), told(other)))",
        ),
    ),
    "the state in another class of the same name": (
        PLAIN
        + """

class Lengths:
    def __init__(self):
        self._used = torch.zeros(2)

    def total(self):
        return self._used.sum()


def shift(thing):
    thing._used += 1
    return thing
""",
        probe("out.append(shift(Lengths()).total())", "shift(memory)"),
    ),
    "a nested function that changes it": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        def advance(n):
            self._used[layer] += n
            return self._used[layer]

        start = int(self._used[layer])
        end = advance(keys.shape[1])
        advance(0)
        self._keys[layer, :, start:end] = keys
""",
            ),
        ),
        probe(),
    ),
    "a layer map that changes": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self._slot = torch.arange(layers)\n        self._used = torch"),
            ("[layer]", "[self._slot[layer]]"),
            ("self._keys[layer,", "self._keys[self._slot[layer],"),
            more="""
    def turn(self):
        self._slot = self._slot.flip(0)
""",
        ),
        probe("memory.append(0, rows(2))", "memory.turn()", "memory.append(0, rows(1))"),
    ),
    "a layer map that is used as an index of tensors": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self._slot = torch.tensor([1, 0])\n        self._used = torch"),
            ("[layer]", "[self._slot[layer].item()]"),
            ("self._keys[layer,", "self._keys[self._slot[layer].item(),"),
            more="""
    def in_order(self):
        return self._keys[self._slot]
""",
        ),
        probe("out.append(memory.in_order())"),
    ),
    "a table of blocks": (
        """\
class Memory:
    def __init__(self, layers, batch, room, size):
        self._keys = torch.zeros(layers, 10, batch, 4, size)
        self._table = torch.full((layers, 10), -1, dtype=torch.long)
        self._used = torch.zeros(layers, dtype=torch.long)

    def length(self, layer):
        return self._used[layer].item()

    def append(self, layer, keys):
        for i in range(keys.shape[1]):
            at = self._used[layer].item()
            if at % 4 == 0:
                self._table[layer, at // 4] = 9 - at // 4
            self._keys[layer, self._table[layer, at // 4], :, at % 4] = keys[:, i]
            self._used[layer] += 1

    def __getitem__(self, layer):
        blocks = (self._used[layer] + 3) // 4
        found = self._keys[layer, self._table[layer, :blocks]].transpose(0, 1).flatten(1, 2)
        return found[:, : self._used[layer]]

    def reset(self):
        self._used.zero_()
        self._table.fill_(-1)
""",
        probe(),
    ),
    "a ring": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        for i in range(keys.shape[1]):
            at = self._used[layer] % 5
            self._keys[layer, :, at] = keys[:, i]
            self._used[layer] += 1
""",
            ),
            (": self._used[layer]]", ": min(self._used[layer], 5)]"),
        ),
        probe(),
    ),
    "a write in the middle of an evaluation": (
        alter(
            PLAIN,
            more="""
    def _next(self, layer):
        self._used[layer] += 1
        return self._used[layer]

    def pair(self, layer):
        both = (self._used[layer], self._next(layer), self._next(layer))
        return int(self._used[layer] * 10 + self._next(layer)), [int(n) for n in both]
""",
        ),
        probe("out.append(memory.pair(0))"),
    ),
    "encoder and decoder lengths, one taken from the other": (
        alter(
            PLAIN,
            ("        self._used = " + MADE, f"        self._used = {MADE}\n        self._past = {MADE}"),
            (ADVANCE, ADVANCE + "        self._past[layer] = self._used[layer]\n        self._used[layer] += 1\n"),
            more="""
    def past(self):
        self._past = self._used
        self._used[0] -= 1
        return self._past.tolist()
""",
        ),
        probe("out.append(memory.past())", "memory.append(0, rows(1))", "out.append(memory.past())"),
    ),
    "two lists of the same counters": (
        alter(
            LIST,
            ("        self._used = [", "        self._all = self._used = ["),
            ("for used in self._used", "for used in self._all"),
        ),
        probe(),
    ),
    "counters that are replaced, while a list keeps the old": (
        alter(
            LIST,
            ("self._used[layer].fill_(end)", "self._used[layer] = self._used[layer] + keys.shape[1]"),
            more="""
    def held(self):
        return [int(n) for n in self._held]

    def hold(self):
        self._held = tuple(self._used)
""",
        ),
        probe("memory.hold()", "memory.append(0, rows(1))", "out.append(memory.held())"),
    ),
    "a reset that makes a new one, while the old is held": (
        alter(
            PLAIN,
            (
                "self._used.zero_()",
                "old = self._used\n        self._used = torch.zeros_like(old)\n"
                "        old += 1\n        self._used[0] = old[0] * 0",
            ),
        ),
        probe(),
    ),
    "the default of a method is the state of the class": (
        alter(
            PLAIN,
            ("class Memory:\n", "class Memory:\n    FIRST = torch.tensor(0)\n\n"),
            ("(self, layer, keys)", "(self, layer, keys, start=FIRST)"),
            (START, "        start = self._used[layer] + start\n"),
        ),
        probe("Memory.FIRST += 1", "memory.append(0, rows(1))", "Memory.FIRST -= 1"),
    ),
    "await in between": (
        "import asyncio\n\n\n"
        + alter(
            PLAIN,
            more="""
    async def later(self, layer, n: int):
        at = self._used[layer]
        await asyncio.sleep(0)
        self._used[layer] += n
        return int(at)

    def both(self):
        async def run():
            return await asyncio.gather(self.later(0, 1), self.later(0, 2))
        return asyncio.run(run())
""",
        ),
        probe("out.append(list(memory.both()))"),
    ),
}

#: Found late.
LATE: Cases = {
    "a list of the module's own, and an annotation": (
        "def list(value):\n    return value\n\n\n"
        + alter(PLAIN, ("class Memory:\n", "class Memory:\n    _used: torch.Tensor\n\n")),
        probe(),
    ),
    "an int of the class's own, and an annotation": (
        alter(PLAIN, ("class Memory:\n", "class Memory:\n    list = int = 3\n    _used: torch.Tensor\n\n")),
        probe(),
    ),
    "a cached property is a live view": (
        "import functools\n\n\n"
        + alter(
            SINGLE,
            more="""
    @functools.cached_property
    def _first(self):
        return self._used

    def first(self):
        return int(self._first)
""",
        ),
        probe("before = memory.first()", "memory.append(0, rows(1))", "out.append((before, memory.first()))"),
    ),
    "a view behind a continue": (
        alter(
            PLAIN,
            more="""
    def told(self):
        seen, n = [], 0
        for i in range(4):
            if i % 2:
                seen.append(int(n))
                continue
            n = self._used[0]
            self._used[0] += 1
        return seen
""",
        ),
        probe("out.append(memory.told())"),
    ),
}

LATE |= {
    "a format with a type, in compiled code": (
        alter(PLAIN, ("return int(self._used[layer].item())", 'return len(f"{self._used[layer]:.1f}")')),
        probe(),
    ),
    "a format of an integer, in compiled code": (
        alter(PLAIN, ("return int(self._used[layer].item())", 'return len(f"{self._used[layer].item():d}")')),
        probe(),
    ),
    "a format with a width, in compiled code": (
        alter(PLAIN, ("return int(self._used[layer].item())", 'return len(f"{self._used[layer]:>4}")')),
        probe(),
    ),
    "a format with a type, in the message of an assertion": (
        alter(PLAIN, (END, END + '        assert end <= self._keys.shape[2], f"{end:d} rows, {end:.1f}"\n')),
        probe(),
    ),
}
