"""What has to be converted, or refusing everything would pass."""

from __future__ import annotations

from tests.caches_attacks.forms import ADVANCE, END, PLAIN, SINGLE, START, WRITE, Cases, alter, probe

#: A plainly good cache -> (source, run).
GOOD: Cases = {
    "one entry a layer": (PLAIN, probe("pass")),
    "one 0-d tensor": (SINGLE, probe("pass")),
    "a dataclass with keys, values and a layer map": (
        """\
from dataclasses import dataclass, field


@dataclass
class Memory:
    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = field(init=False, repr=False)
    _values: torch.Tensor = field(init=False, repr=False)
    _used: torch.Tensor = field(init=False, repr=False)
    _slot: torch.Tensor = field(init=False, repr=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._values = torch.zeros_like(self._keys)
        self._used = torch.zeros(self.layers, dtype=torch.int)
        self._slot = torch.zeros(self.layers, dtype=torch.int)
        for slot, layer in enumerate(reversed(range(self.layers))):
            self._slot[layer] = int(slot)

    def length(self, layer: int) -> int:
        return int(self._used[self._slot[layer].item()].item())

    def append(self, layer: int, keys: torch.Tensor) -> None:
        slot = self._slot[layer].item()
        start = self._used[slot]
        end = start + keys.shape[1]
        assert end <= self.room, f"{end} of {self.room}"
        self._keys[slot, :, start:end] = keys
        self._values[slot, :, start:end] = keys * 2
        self._used[slot] = end

    def __getitem__(self, layer: int) -> torch.Tensor:
        slot = self._slot[layer].item()
        end = self._used[slot].item()
        return self._keys[slot, :, :end] + self._values[slot, :, :end]

    def reset(self) -> None:
        self._keys.zero_()
        self._values.zero_()
        self._used.zero_()
""",
        probe("pass"),
    ),
    "the length is a property": (
        alter(
            SINGLE,
            (
                "    def length(self, layer):\n",
                "    def length(self, layer):\n        return self.filled\n\n    @property\n    def filled(self):\n",
            ),
        ),
        probe("pass"),
    ),
    "added to in place": (alter(PLAIN, (ADVANCE, "        self._used[layer] += keys.shape[1]\n")), probe("pass")),
    "added to by a method": (alter(PLAIN, (ADVANCE, "        self._used[layer].add_(keys.size(1))\n")), probe("pass")),
    "one counter, added to": (alter(SINGLE, ("self._used.fill_(end)", "self._used += keys.shape[1]")), probe("pass")),
    "one counter, added to by a method": (
        alter(SINGLE, ("self._used.fill_(end)", "self._used.add_(keys.shape[1])")),
        probe("pass"),
    ),
    "int() instead of item()": (alter(PLAIN, (START, "        start = int(self._used[layer])\n")), probe("pass")),
    "a reset by fill_": (alter(PLAIN, ("self._used.zero_()", "self._used.fill_(0)")), probe("pass")),
    "made on a device": (
        alter(
            PLAIN,
            ("room, size):", "room, size, device=None):"),
            ("dtype=torch.int)", "dtype=torch.int64, device=device)"),
        ),
        probe("pass"),
    ),
    "room is asked for": (
        alter(
            PLAIN, (END, END + '        if end > self._keys.shape[2]:\n            raise ValueError(f"{end} rows")\n')
        ),
        probe("out.append(tried(memory.append, 0, rows(99)))"),
    ),
    "a guarded break in the way": (
        alter(
            PLAIN,
            (WRITE, WRITE + "        if torch.compiler.is_compiling():\n            torch._dynamo.graph_break()\n"),
        ),
        probe("pass"),
    ),
    "a prefix is dropped": (
        alter(
            PLAIN,
            more="""
    def crop(self, layer, keys):
        self._used[layer] -= keys.shape[1]
""",
        ),
        probe("memory.crop(0, rows(2))", "memory.append(0, rows(1))"),
    ),
}
