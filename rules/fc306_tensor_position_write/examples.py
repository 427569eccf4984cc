"""Examples and near misses of FC306."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.fc306_tensor_position_write.slice_text import WRITE

_DATACLASS = """\
from dataclasses import dataclass


@dataclass
class Memory:
    at: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor


"""

_ATTENTION_BEFORE = """\
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x, memory: Memory):
        n = x.shape[1]
        query, key, value = self.qkv(x).chunk(3, -1)
        start = memory.at[0]
        end = start + n
        memory.key[:, start:end] = key
        memory.value[:, start:end] = value
        places = torch.arange(memory.key.shape[1])
        seen = places <= (start + torch.arange(n))[:, None]
        scores = (query @ memory.key.transpose(1, 2)).masked_fill(~seen, float("-inf"))
        memory.at += n
        return scores.softmax(-1) @ memory.value
"""

_ATTENTION_AFTER = _ATTENTION_BEFORE.replace(
    "memory.key[:, start:end] = key", "_write_slice(key, memory.key, 1, start, n)"
).replace("memory.value[:, start:end] = value", "_write_slice(value, memory.value, 1, start, n)")

_DECODE = """\
def decode(f, rows, room, steps):
    made = (torch.zeros(rows, dtype=torch.int32), torch.zeros(rows, room, 4), torch.zeros(rows, room, 4))
    memory, outs = Memory(*made), []
    x = torch.linspace(-1, 1, rows * 3 * 4).view(rows, 3, 4)
    for _ in range(steps):
        y = f(x, memory)
        x = y[:, -1:]
        outs += [y, memory.key.clone()]
    return outs
def make(): return Attention().eval()
"""

_ROUNDS = "calls = [lambda f: decode(f, 2, 8, 5), lambda f: decode(f, 3, 8, 4), lambda f: decode(f, 2, 4, 6)]\n"

_LIST_BEFORE = """\
class Memory:
    def __init__(self, rows, room):
        self.at = torch.zeros(rows, dtype=torch.long)
        self.key = torch.zeros(rows, 2, room, 4)


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x, memories: list[Memory]):
        for layer, memory in zip(self.layers, memories):
            key = layer(x).unsqueeze(1).expand(-1, 2, -1, -1)
            memory.key[:, :, memory.at[0] : memory.at[0] + x.shape[1], :] = key  # behind what was kept
            memory.at = memory.at + x.shape[1]
            x = x + memory.key.sum((1, 2), keepdim=True)[:, 0]
        return x
"""

_STATE_BEFORE = """\
class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3, 10, 4, dtype=torch.float64))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        rows, n, _ = x.shape
        self.seen[:rows, self.place : self.place + n] = x
        self.place.add_(n).remainder_(10)
        return self.seen.sum(1)
"""

_LAST_BEFORE = """\
class Put(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, where: torch.Tensor):
        kept = self.proj(x).repeat(1, 2, 1)
        fresh = self.proj(x * 2)
        kept[..., where : fresh.size(-2) + where, :] = fresh
        return kept
"""

_SLOT_BEFORE = """\
class Slots(nn.Module):
    def forward(self, x, into, lengths):
        counts = lengths.cumsum(0).clamp(max=6)
        out = into.clone()
        for slot in range(2):
            last = counts[slot] + 2
            out[slot, counts[slot] : last] = x[slot]
        return out
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="keys and values in a dataclass, from one position on",
        unsafe=True,
        before=_DATACLASS + _ATTENTION_BEFORE,
        after=_DATACLASS + WRITE + "\n\n" + _ATTENTION_AFTER,
        run=_DECODE + _ROUNDS,
    ),
    Example(
        title="a list of objects, one for each layer; the bounds are written out",
        unsafe=True,
        before=_LIST_BEFORE,
        after=_LIST_BEFORE.replace("class Stack", WRITE + "\n\nclass Stack").replace(
            "memory.key[:, :, memory.at[0] : memory.at[0] + x.shape[1], :] = key",
            "_write_slice(key, memory.key, 2, memory.at[0], x.shape[1])",
        ),
        run="""\
def decode(f, rows):
    memories, outs = [Memory(rows, 6) for _ in range(2)], []
    for n in (3, 1, 1, 1, 1, 1):
        y = f(torch.linspace(-1, 1, rows * n * 4).view(rows, n, 4), memories)
        outs += [y, *(m.key.clone() for m in memories)]
    return outs
def make(): return Stack().eval()
calls = [lambda f: decode(f, 2), lambda f: decode(f, 3)]
""",
    ),
    Example(
        title="a part of the rows of a buffer, of another dtype; the position is a buffer of one element",
        unsafe=True,
        before=_STATE_BEFORE,
        after=WRITE
        + "\n\n"
        + _STATE_BEFORE.replace(
            "self.seen[:rows, self.place : self.place + n] = x",
            "_write_slice(x, self.seen[:rows, :], 1, self.place, n)",
        ),
        run="""\
def make(): return Ring()
calls = [(torch.ones(2, 3, 4),), (torch.full((3, 2, 4), 2.0),), (torch.full((1, 5, 4), 3.0),), (torch.ones(2, 2, 4),)]
""",
    ),
    Example(
        title="a dimension that is counted from the end, with gradients",
        unsafe=True,
        before=_LAST_BEFORE,
        after=WRITE
        + "\n\n"
        + _LAST_BEFORE.replace(
            "kept[..., where : fresh.size(-2) + where, :] = fresh",
            "_write_slice(fresh, kept, -2, where, fresh.size(-2))",
        ),
        run="""\
def make(): return Put()
calls = [(torch.randn(2, 3, 4), torch.tensor(at)) for at in (0, 2, 3, -4)]
calls += [(torch.randn(2, 1, 4), torch.tensor(at)) for at in (0, 1, 7, -1, -2, -9)]
train = True
""",
    ),
    Example(
        title="row by row, each from a place of its own",
        unsafe=True,
        before=_SLOT_BEFORE,
        after=WRITE
        + "\n\n"
        + _SLOT_BEFORE.replace(
            "out[slot, counts[slot] : last] = x[slot]", "_write_slice(x[slot], out[slot, :], 0, counts[slot], 2)"
        ),
        run="""\
def make(): return Slots()
calls = [(torch.ones(2, 2, 3), torch.zeros(2, 8, 3), torch.tensor(n)) for n in ([1, 2], [0, 6], [5, 9])]
""",
    ),
    Example(
        title="one place, which may lie behind the end or be counted from there: as Python has it",
        unsafe=True,
        before="""\
class Blank(nn.Module):
    def forward(self, x, at: torch.Tensor, row):
        y = x.clone()
        y[:, at : at + 1] = row.unsqueeze(1)
        return y
""",
        after=WRITE
        + """

class Blank(nn.Module):
    def forward(self, x, at: torch.Tensor, row):
        y = x.clone()
        _write_slice(row.unsqueeze(1), y, 1, at, 1)
        return y
""",
        run="""\
def make(): return Blank()
calls = [(torch.zeros(2, 5, 3), torch.tensor(at), torch.ones(2, 3)) for at in (0, 2, 3, 4, 9, -1)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a number of Python",
        source="""\
class Write(nn.Module):
    def forward(self, x, cache, at: int):
        cache[:, at : at + x.shape[1]] = x
        return cache.sum(1)
""",
    ),
    NearMiss(
        title="how long the slice is is data: its value is cut to that",
        source="""\
class Write(nn.Module):
    def forward(self, x, last: torch.Tensor):
        y = torch.zeros_like(x)
        y[:, :last] = x[:, :last]
        y[:, last:] = 1
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="an end of its own",
        source="""\
class Write(nn.Module):
    def forward(self, x, bounds: torch.Tensor):
        y = x.clone()
        y[:, bounds[0] : bounds[1]] = x.sum(1, keepdim=True)
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="a step",
        source="""\
class Write(nn.Module):
    def forward(self, x, at: torch.Tensor):
        y = torch.zeros(2, 12)
        y[:, at : at + 6 : 2] = x
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="rows that are picked by a tensor beside it",
        source="""\
class Write(nn.Module):
    def forward(self, x, cache, rows, at: torch.Tensor):
        cache[rows, at : at + 2] = x
        return cache.sum(1)
""",
        reported=True,
    ),
    NearMiss(
        title="a function of that name",
        source="""\
def _write_slice(x):
    return x + 1


class Write(nn.Module):
    def forward(self, x, cache, at: torch.Tensor):
        cache[:, at : at + 2] = _write_slice(x)
        return cache.sum(1)
""",
        reported=True,
    ),
    NearMiss(
        title="Python's own functions have another meaning",
        source="""\
def slice(x):
    return x[:1]


class Write(nn.Module):
    def forward(self, x, cache, at: torch.Tensor):
        cache[:, at : at + 2] = x
        return slice(cache.sum(1))
""",
        reported=True,
    ),
    NearMiss(
        title="nothing compiles it",
        source="""\
def fill(x, cache, at: torch.Tensor):
    cache[:, at : at + 2] = x
""",
    ),
)
