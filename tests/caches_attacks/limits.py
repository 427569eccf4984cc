"""What is not promised, and what happens instead: the rules say so under "Fix safety"."""

from __future__ import annotations

from tests.caches_attacks.forms import BREAK, INTS, PLAIN, alter, probe

#: What is done -> (source, run, the difference that it makes).
LIMITS: dict[str, tuple[str, str, str]] = {
    # What a dataclass shows of itself says the numbers without ``tensor()``.
    "a dataclass is compared and shown": (
        """\
import dataclasses


@dataclasses.dataclass
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = dataclasses.field(init=False, repr=False, compare=False)
    _used: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._used = torch.zeros(self.layers, dtype=torch.int)
"""
        + PLAIN[PLAIN.index("\n    def length") :],
        probe("out.append((repr(memory), tried(lambda: memory == new())))"),
        "_used=[9, 9])",
    ),
    # An index that the host reads one element with is an integer: anything else raises, also a list of one.
    "a layer that is True, a list of one, a slice, a mask": (
        PLAIN,
        probe(
            "memory = Memory(1, 2, 40, 4)",
            "for layer in (True, -1, torch.tensor(0), torch.tensor([0])):\n    out.append(tried(memory.length, layer))",
            "memory.append(0, rows(2))\nmemory = new()",
        ),
        "int against st",
    ),
    "a layer that is a list of one": (
        PLAIN,
        probe(
            "memory = Memory(1, 2, 40, 4)",
            "memory.append(0, rows(2))",
            "out.append(tried(memory.length, [0]))",
            "memory = new()",
        ),
        "int against st",
    ),
    "a layer that is a slice of one": (
        PLAIN,
        probe("memory = Memory(1, 2, 40, 4)", "out.append(memory.length(slice(0, 1)))", "memory = new()"),
        "int against list",
    ),
    # Code that the tool does not see replaces a function of the module: it is not called.
    "an alias of the break that others replace": (
        "from torch._dynamo import graph_break as _pause\n\n\n" + alter(INTS, (BREAK, "        _pause()\n")),
        probe(
            "global _pause",
            "seen, kept = [], _pause",
            "_pause = lambda: seen.append(1)",
            "memory.append(0, rows(1))",
            "_pause = kept",
            "out.append(len(seen))",
        ),
        "1 against 0",
    ),
    # The mark is an attribute of the tensor.
    "buffers that are listed by their attributes": (
        alter(INTS, (BREAK, "")),
        probe("out.append([list(vars(t)) for t in vars(memory).values() if isinstance(t, torch.Tensor)])"),
        "0 items against 1",
    ),
}
