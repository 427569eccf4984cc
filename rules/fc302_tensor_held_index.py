"""FC302: integers that an object keeps in tensors though the host reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.caching.caches import Caches
from patcher.facts.tensor_state import Change, TensorState, TensorStates
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Example,
    Finding,
    Fix,
    NearMiss,
    Replace,
    ReplaceStatements,
    Rule,
    Where,
    filled,
)
from rules.examples import CACHED_DECODING


class TensorHeldIndex(Rule):
    """Integers that an object keeps in tensors, such as how far each layer's cache is filled, and reads on the host.

    What it does:
        Turns the tensors into Python integers: a 0-d tensor becomes an int, a row with one element for each layer a
        list of ints. ``.item()`` and ``int()`` around the reads go, ``numel()`` becomes ``len()``, ``zero_()``,
        ``fill_()`` and ``add_()`` become assignments, and the annotations follow. All integer tensors of the class
        that the host reads are converted, or none.

    Why it breaks compilation:
        A number that is read out of a tensor does not exist while Dynamo traces: each read breaks the graph. A Python
        integer of an object that is passed to the model is an input of the graph like a size: constant at first,
        dynamic from the second value on, so there is one recompile and then one graph for all lengths. Measured on
        torch 2.13, Toto with 12 layers, prefill and 12 steps, two rounds: 30 breaks, 24 recompiles and 104 graph
        launches a step become 0, 1 and 1, together with FC502.

    Fix safety:
        Safe when every place of the class that touches the attribute is one of these:

        - it is made by ``zeros``, ``ones`` or ``tensor``, of 32 or 64 bits, with no shape or one of one dimension;
        - one integer of it is read by ``.item()`` or ``int()``, is the bound of a slice, or is compared in a test;
        - an integer is added to it, or taken away, and the result is used so as well;
        - an integer or such a result is stored in it; it is set to a constant as a whole; its elements are counted.

        Nothing else touches it: no subclass or base, no other class or code of the project, no copying of all
        attributes, no pickling. A name for it is not read after the state changes. Amounts that are not known for sure
        to be integers are stored through ``int()``. Unsafe, with what has to be true: an amount or index has no type.

        Not fixed when:

        - any other use is seen, or the attribute is registered in a module or shared by all instances;
        - Dynamo would compile the integers in: those of modules, and of objects that a module or a global keeps; those
          that advance and are a plain index (``x[:, n]``, ``range(n)``), become text, or are compared for a result.

        Seen from outside all the same: ``repr`` of a dataclass and the arguments of an error show integers; an index
        that is no integer raises TypeError; integers go on where those of 32 bits would wrap round. A plain function
        that gives a module its cache is not followed: there the integers are compiled in, for more recompiles.

    References:
        The key/value cache of the Toto report; PyTorch, "Dynamic shapes" and graph break GB0124 (``Tensor.item()``).
    """

    code: ClassVar[str] = "FC302"
    name: ClassVar[str] = "tensor-held-index"
    triggers: ClassVar[tuple[bytes, ...]] = (b"zeros", b"ones", b"full", b"tensor(", b"arange")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "recompilation", "CUDA graphs")

    counts_on: ClassVar[tuple[str, ...]] = ("FC301", "FC502")  # what a cache gets otherwise, and flags of its lengths

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the attributes of the class ``node`` that hold such integers."""
        assert isinstance(node, ast.ClassDef)
        state = facts.ask(TensorStates).of(node)
        if state is None or facts.settings.strategy("kv-cache") not in ("auto", "single-graph", "static"):
            return
        cache = facts.ask(Caches).of(node) is not None  # which comes to compiled code as an argument
        if not cache and (state.obstacle or not facts.may_be_used_in_graph(node)):
            return
        strategy = "single-graph" if cache else ""
        obstacle = state.obstacle
        zones, flags = self.counts_on
        if cache and zones in facts.active and flags not in facts.active:
            obstacle = obstacle or f"without {flags}, which this run leaves out, flags would break the graph"
        kept = [attribute for attribute, s in state.attributes if facts.silenced(self.code, s)]
        if kept and not obstacle:
            obstacle = f"`{kept[0]}` is to stay as it is"
        if obstacle:
            names = " and ".join(f"`{a}`" for a, _ in state.attributes)
            yield Finding(state.attributes[0][1], _message(names, state), assumption=obstacle)
            return
        applicability = Applicability.UNSAFE if state.doubts else Applicability.SAFE
        fix = Fix(tuple(_edits(state.changes, facts)), applicability)
        for attribute, statement in state.attributes:
            yield Finding(statement, _message(f"`{attribute}`", state), fix, "; ".join(state.doubts), strategy)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="how far each layer is filled, and which slot it has",
            before='''
from dataclasses import dataclass, field


@dataclass
class Memory:
    """Keys of every layer (layers, B, room, size), written one behind the other."""

    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = field(init=False)
    _filled: torch.Tensor = field(init=False)
    _slots: torch.Tensor = field(init=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self._keys)
        self._filled = torch.zeros(self.layers, dtype=torch.int)  # per layer
        self._slots = torch.zeros((self.layers,), dtype=torch.int)
        for slot, layer in enumerate(range(self.layers)):
            self._slots[layer] = int(slot)

    def length(self, layer: int) -> int:
        return int(self._filled[self._slots[layer].item()].item()) if self._filled.numel() > 0 else 0

    def append(self, layer, keys):
        """Write keys (B, fresh, size)."""
        slot = int(self._slots[layer].item())
        start = self._filled[slot]
        end = start + keys.shape[1]
        assert end <= self.room, f"full: {end}"
        self._keys[slot, :, start:end] = keys
        self._filled[slot] = end

    def __getitem__(self, layer):
        return self._keys[self._slots[layer].item(), :, : self.length(layer)]

    def reset(self):
        self._keys.zero_()
        self._filled.zero_()
''',
            after='''
from dataclasses import dataclass, field


@dataclass
class Memory:
    """Keys of every layer (layers, B, room, size), written one behind the other."""

    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = field(init=False)
    _filled: list[int] = field(init=False)
    _slots: list[int] = field(init=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self._keys)
        self._filled = [0] * self.layers  # per layer
        self._slots = [0] * self.layers
        for slot, layer in enumerate(range(self.layers)):
            self._slots[layer] = int(slot)

    def length(self, layer: int) -> int:
        return self._filled[self._slots[layer]] if len(self._filled) > 0 else 0

    def append(self, layer, keys):
        """Write keys (B, fresh, size)."""
        slot = self._slots[layer]
        start = self._filled[slot]
        end = start + keys.shape[1]
        assert end <= self.room, f"full: {end}"
        self._keys[slot, :, start:end] = keys
        self._filled[slot] = end

    def __getitem__(self, layer):
        return self._keys[self._slots[layer], :, : self.length(layer)]

    def reset(self):
        self._keys.zero_()
        self._filled[:] = [0] * len(self._filled)
''',
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        ),
        Example(
            title="one counter",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.seen = torch.tensor(0)

    def append(self, layer, keys):
        start = self.seen.item() - (keys.size(1) if layer else 0)
        self.keys[layer, :, start : start + keys.size(1)] = keys
        if layer == 0:
            self.seen += keys.size(1)

    def __getitem__(self, layer):
        if self.seen == 0:
            raise ValueError("nothing there")
        return self.keys[layer, :, : self.seen]

    def length(self, layer):
        return int(self.seen)

    def reset(self):
        self.seen.zero_()
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.seen = 0

    def append(self, layer, keys):
        start = self.seen - (keys.size(1) if layer else 0)
        self.keys[layer, :, start : start + keys.size(1)] = keys
        if layer == 0:
            self.seen += keys.size(1)

    def __getitem__(self, layer):
        if self.seen == 0:
            raise ValueError("nothing there")
        return self.keys[layer, :, : self.seen]

    def length(self, layer):
        return self.seen

    def reset(self):
        self.seen = 0
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        ),
        Example(
            title="a counter that methods of the tensor advance",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.seen = torch.zeros((), dtype=torch.long)

    def append(self, layer, keys):
        if layer == 0:
            self.seen.add_(keys.shape[1])
        end = self.seen.item()
        self.keys[layer, :, end - keys.shape[1] : end] = keys

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.seen.item()]

    def length(self, layer):
        return self.seen.item()

    def reset(self):
        self.seen.fill_(0)
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.seen = 0

    def append(self, layer, keys):
        if layer == 0:
            self.seen += keys.shape[1]
        end = self.seen
        self.keys[layer, :, end - keys.shape[1] : end] = keys

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.seen]

    def length(self, layer):
        return self.seen

    def reset(self):
        self.seen = 0
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        ),
        Example(
            title="a length for each layer that advances in place",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.layers = layers
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = torch.zeros(self.layers, dtype=torch.int64)

    def append(self, layer: int, keys):
        start = self.filled[layer].item()
        self.keys[layer, :, start : start + keys.shape[1]] = keys
        self.filled[layer] += keys.shape[1]

    def __getitem__(self, layer: int):
        return self.keys[layer, :, : self.filled[layer]]

    def length(self, layer: int):
        return int(self.filled[layer])

    def reset(self):
        self.filled.zero_()
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.layers = layers
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * self.layers

    def append(self, layer: int, keys):
        start = self.filled[layer]
        self.keys[layer, :, start : start + keys.shape[1]] = keys
        self.filled[layer] += keys.shape[1]

    def __getitem__(self, layer: int):
        return self.keys[layer, :, : self.filled[layer]]

    def length(self, layer: int):
        return self.filled[layer]

    def reset(self):
        self.filled[:] = [0] * len(self.filled)
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        ),
        Example(
            title="an amount that somebody gives",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = torch.zeros(layers, dtype=torch.int)

    def append(self, layer, keys):
        self.write(layer, keys, keys.shape[1])

    def write(self, layer, keys, count):
        end = self.filled[layer] + count
        self.keys[layer, :, end - count : end] = keys
        self.filled[layer] = end

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.length(layer)]

    def length(self, layer):
        return int(self.filled[layer].item())

    def reset(self):
        self.filled.zero_()
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers

    def append(self, layer, keys):
        self.write(layer, keys, keys.shape[1])

    def write(self, layer, keys, count):
        end = self.filled[layer] + count
        self.keys[layer, :, end - count : end] = keys
        self.filled[layer] = int(end)

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.length(layer)]

    def length(self, layer):
        return self.filled[layer]

    def reset(self):
        self.filled[:] = [0] * len(self.filled)
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
            unsafe=True,
        ),
        Example(
            title="a model that keeps its memory",
            before="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(1, batch, room, size)
        self.filled = torch.tensor(0)

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[0, :, self.filled : end] = keys
        self.filled = end
        return self.keys[0, :, :end]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(4, 8)
        self.memory = Memory(2, 24, 4)

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        past = self.memory.update(k)
        return (q @ past.transpose(1, 2)).softmax(-1) @ past
""",
            after=None,
            run="""
def make(): return Net()
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (5, 1, 1, 3)]
""",
        ),
    )

    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="an index that stays a tensor",
            source="""
class Memory:
    def __init__(self, batch, heads, room, size):
        self.keys = torch.zeros(batch, heads, room, size)
        self.filled = torch.zeros((), dtype=torch.long)

    def update(self, keys):
        places = torch.arange(keys.shape[2]) + self.filled
        self.filled.add_(keys.shape[2])
        self.keys.index_copy_(2, places, keys)
        return self.keys

    def length(self):
        return self.filled
""",
        ),
        NearMiss(
            title="an index in Python integers",
            source="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.filled = [0] * layers

    def append(self, layer, keys):
        end = int(self.filled[layer]) + keys.shape[1]
        self.keys[layer, :, self.filled[layer] : end] = keys
        self.filled[layer] = end

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.filled[layer]]
""",
        ),
        NearMiss(
            title="methods that are eager zones",
            source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.tensor(0)

    @torch.compiler.disable
    def append(self, keys):
        n = self.filled.item()
        self.keys[:, n : n + keys.shape[1]] = keys
        self.filled += keys.shape[1]

    @torch._dynamo.disable(recursive=True)
    def all(self):
        return self.keys[:, : self.filled]
""",
        ),
        NearMiss(
            title="a metric that compiled code never sees",
            source="""
class Accuracy:
    def __init__(self):
        self.right = torch.tensor(0)
        self.total = torch.tensor(0)

    def update(self, guesses, truth):
        self.right += (guesses == truth).sum()
        self.total += truth.numel()

    def compute(self):
        return self.right.item() / max(self.total.item(), 1)
""",
        ),
        NearMiss(
            title="lengths that come from tensors",
            source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros(batch, dtype=torch.long)  # rows differ

    def update(self, lengths, keys):
        for row in range(keys.shape[0]):
            n = int(lengths[row].item())
            self.keys[row, self.filled[row] : self.filled[row] + n] = keys[row, :n]
        self.filled += lengths
        return self.keys
""",
            reported=True,
        ),
        NearMiss(
            title="a start that is read after the state went on",
            source="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.filled = torch.zeros(layers, dtype=torch.int)

    def update(self, layer, keys):
        start = self.filled[layer]
        self.filled[layer] += keys.shape[1]
        self.keys[layer, :, start - keys.shape[1] : start] = keys
        return self.keys[layer, :, : self.filled[layer]]
""",
            reported=True,
        ),
        NearMiss(
            title="one tensor for all layers",
            source="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        self.filled = [torch.tensor(0)] * layers

    def update(self, layer, keys):
        n = self.filled[layer].item()
        self.keys[layer][:, n : n + keys.shape[1]] = keys
        self.filled[layer].add_(keys.shape[1])
        return self.keys[layer][:, : self.filled[layer]]
""",
            reported=True,
        ),
        NearMiss(
            title="numbers that wrap round",
            source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.tensor(0, dtype=torch.uint8)

    def update(self, keys):
        n = self.filled.item()
        self.keys[:, n : n + keys.shape[1]] = keys
        self.filled += keys.shape[1]
        return self.keys[:, : self.filled]
""",
            reported=True,
        ),
        NearMiss(
            title="a part of the module's state",
            source="""
class Memory(nn.Module):
    def __init__(self, batch, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, room, size))
        self.register_buffer("filled", torch.tensor(0))

    def forward(self, keys):
        n = self.filled.item()
        self.keys[:, n : n + keys.shape[1]] = keys
        self.filled += keys.shape[1]
        return self.keys[:, : self.filled]
""",
            reported=True,
        ),
    )


def _message(names: str, state: TensorState) -> str:
    return f"{names} of `{state.cls.name}`: integers in a tensor that the host reads, which breaks the graph"


def _edits(changes: tuple[Change, ...], facts: Facts) -> Iterator[Edit]:
    """The changes that stand in no other one, with those inside of them."""
    by_target: dict[ast.AST, Change] = {c.target: c for c in changes}
    for change in changes:
        if any(parent in by_target for parent in facts.syntax.ancestors(change.target)):
            continue
        if isinstance(change.target, ast.expr):
            yield Replace(change.target, _code(change, by_target))
        else:
            yield ReplaceStatements((change.target,), (_code(change, by_target),))


def _code(change: Change, by_target: dict[ast.AST, Change]) -> Code:
    inner = {t: _code(c, by_target) for t, c in by_target.items() if c is not change and _inside(t, change)}
    return Code(change.template, tuple(Code(p) if isinstance(p, str) else filled(p, inner) for p in change.parts))


def _inside(target: ast.AST, change: Change) -> bool:
    parts = [p for p in change.parts if isinstance(p, ast.AST)]
    return any(n is target for p in parts for n in ast.walk(p))
