"""FC301: a cache of keys and values that is changed inside of compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.caching.bookkeeping import CacheMethod
from patcher.facts.caching.caches import Cache, Caches
from patcher.facts.syntax.tree import dotted
from patcher.facts.tables import torch_api as api
from patcher.facts.tensor_state import TensorState, TensorStates
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Decorate,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    ReplaceStatements,
    Rule,
    Where,
)
from rules.examples import CACHED_DECODING

_ONE_GRAPH = "nothing that is compiled with fullgraph=True, or exported, reaches this cache: there, a break is an error"
#: Decorators that do not care which function object they are given.
_HARMLESS = api.GRAD_OFF | {
    "property",
    "abc.abstractmethod",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "typing.final",
    "typing.override",
    "typing_extensions.override",
}


#: A model that calls ``update`` once.
_ONE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(4, 8)

    def forward(self, x, memory):
        q, k = self.qk(x).chunk(2, -1)
        past = memory.update(0, k)
        return (q @ past.transpose(1, 2)).softmax(-1) @ past

def go(net):
    memory = Memory(1, 2, 24, 4)
    return [net(torch.linspace(-1, 1, 8 * n).view(2, n, 4), memory) for n in (5, 1, 1, 3)]

def make(): return Net()
calls = [go, go]
"""


class KVCacheMutation(Rule):
    """A method of a key/value cache that reads or changes, in compiled code, how far the cache is filled.

    What it does:
        Keeps the cache's bookkeeping from splitting the graph, in one of three ways (``--strategy kv-cache=NAME``).
        ``single-graph`` leaves an index that is kept in tensors to FC302, which makes it Python integers, and takes
        explicit graph breaks out of the methods whose index is Python integers: under a guard, through an alias or
        through a function of the module, wherever they stand. ``eager-zone`` marks the methods that read or write the
        index ``@torch.compiler.disable``. ``graph-break`` puts an explicit break before the first read or write of
        the cache's state in each of them; a break of your own that stands further down moves up.
        The default, ``auto``, is ``single-graph`` where FC302 can prove that the index can be Python integers, or where
        it is already and only explicit breaks stand in the way. FC502 has to take part in the run, for flags such as
        ``is_causal=n == m`` end such a graph otherwise. Elsewhere, ``auto`` is ``eager-zone`` for the methods in which
        the host reads an integer tensor of the cache (``.item()``, ``int(t)``, a tensor as the bound of a slice), and
        for those that use what such a method returns: they break the graph anyway. Other methods are not fixed. Each
        finding names its strategy, and says what keeps the cache from being part of one graph.

    Why it breaks compilation:
        A number that is read out of a tensor does not exist while Dynamo traces, so each ``.item()`` breaks the graph,
        compiles the rest of the method as a function of its own with guards on the cache's state, and recompiles as
        the cache fills. What follows an explicit ``graph_break()`` is compiled again in the same way: it is no
        eager zone. ``torch.compiler.disable`` is one break at the call, and nothing inside is traced or guarded. Python
        integers are inputs of the graph, which is compiled once more when they change, and then serves all of them.

        Measured on torch 2.13: Toto with 12 layers, two rounds of prefill and 12 steps (breaks, recompiles, graph
        launches a step): 30/24/104 as it is, 0/1/1 with ``auto`` and all rules, and no recompile limit hit. For
        ``auto``'s second choice, the same model with all launches: 30/24/1354 as it is, 24/21/1068 with ``eager-zone``,
        44/37/2129 and a hit recompile limit with ``graph-break``; a Toto whose index is a list, with a break behind the
        writes, 29/36/793 and a hit limit as it is, 41/51/1084 and two with ``graph-break``. So the seed's form is there
        for those who ask for it, and is not the default. Two stores of our own with three layers, called in a loop: 6/3
        and 4/8 breaks and recompiles become 1/0 and 1/0 with ``eager-zone``, and 18 calls take 2.5 instead of 3.3 ms
        and 2.0 instead of 3.4 ms (CPU, inductor; 6.4 and 4.3 with ``graph-break``), although the methods' own few
        operators are then no longer compiled.

    Fix safety:
        Eager code computes what it did before: a graph break, its absence and ``torch.compiler.disable`` change nothing
        outside of compiled code. Decorating imports ``torch._dynamo`` when the class is defined. Where a break is an
        error (``fullgraph=True`` or ``torch.export``, anywhere in the files that are looked at), adding one or a zone
        is unsafe. So is a zone that nobody asked for: reads are captured with ``fullgraph=True`` and with the capture
        flags. A break is taken out only where nothing else can be called by its name, and where its line holds nothing
        else and its block does.
        A class is a cache when it has a buffer of three dimensions or more and integers that its initialiser makes,
        a method that writes the buffer at a place computed from these integers, one that adds to them, and one that
        reads a prefix or all of the buffer. Counters, running statistics, queues that wrap round, rows that are
        addressed one by one, and buffers whose length somebody else keeps are none.
        ``single-graph`` is refused, with the reason, for what FC302 refuses (registered buffers, say, which belong to
        the module's state), and for caches that are modules or that a module keeps in an attribute, for Dynamo compiles
        integers in that it reaches through a module. The zones of ``auto`` leave alone: methods that compute more than
        where data goes, methods with decorators that are not known, and projects that capture scalar outputs. Caches
        whose amounts are themselves tensor data are only reported, whatever the strategy. Methods that only empty the
        cache count when compiled code is known to reach them.

    References:
        The key/value cache of the Toto report, and docs/results/toto-kv-cache.md; PyTorch, ``torch.compiler.disable``
        and "Working with graph breaks" (``Tensor.item()``: graph break GB0124).
    """

    code: ClassVar[str] = "FC301"
    name: ClassVar[str] = "kv-cache-mutation"
    triggers: ClassVar[tuple[bytes, ...]] = (b"zeros", b"empty", b"ones", b"full")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "recompilation", "CUDA graphs")
    counts_on: ClassVar[tuple[str, ...]] = ("FC302", "FC502")  # integers for the index, and flags that follow from it
    strategy_key: ClassVar[str] = "kv-cache"
    strategies: ClassVar[tuple[str, ...]] = ("auto", "single-graph", "graph-break", "eager-zone")

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` stands in a cache."""
        return facts.ask(Caches).hold(node)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the methods of the cache class ``node`` that the chosen strategy is about."""
        assert isinstance(node, ast.ClassDef)
        cache = facts.ask(Caches).of(node)
        if cache is None or any(facts.syntax.qualified(d) in api.COMPILE for d in node.decorator_list):
            return
        for method in cache.methods:
            if _called_in_graph(cache, method, facts):
                yield from _findings(cache, method, facts)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="how far each layer is filled, in one integer tensor",
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

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._filled = torch.zeros(self.layers, dtype=torch.int)

    # how many
    def length(self, layer):
        return int(self._filled[layer].item())

    def append(self, layer, keys):
        """Write keys (B, fresh, size)."""
        start = self._filled[layer]
        end = start + keys.shape[1]
        assert end <= self.room, "full"
        self._keys[layer, :, start:end] = keys
        self._filled[layer] = end

    def __getitem__(self, layer):
        return self._keys[layer, :, : self.length(layer)]

    def reset(self):
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
    _filled: torch.Tensor = field(init=False)

    def __post_init__(self):
        self._keys = torch.zeros(self.layers, self.batch, self.room, self.size)
        self._filled = torch.zeros(self.layers, dtype=torch.int)

    # how many
    @torch.compiler.disable
    def length(self, layer):
        return int(self._filled[layer].item())

    @torch.compiler.disable
    def append(self, layer, keys):
        """Write keys (B, fresh, size)."""
        start = self._filled[layer]
        end = start + keys.shape[1]
        assert end <= self.room, "full"
        self._keys[layer, :, start:end] = keys
        self._filled[layer] = end

    @torch.compiler.disable
    def __getitem__(self, layer):
        return self._keys[layer, :, : self.length(layer)]

    def reset(self):
        self._filled.zero_()
''',
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
            unsafe=True,
        ),
        Example(
            title="a 0-d tensor for each layer, a decorated method, lists that grow in the initialiser",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.rows = []
        self.at = []
        for _ in range(layers):
            self.rows.append(torch.zeros(batch, room, size))
            self.at.append(torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def append(self, layer, keys):
        rows, at = self.rows[layer], self.at[layer]
        n = at.item()
        rows[:, n : n + keys.shape[1]] = keys
        at += keys.shape[1]

    def __getitem__(self, layer):
        return self.rows[layer][:, : self.at[layer]]

    def length(self, layer): return self.at[layer].item()

    def reset(self):
        for at in self.at:
            at.zero_()
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.rows = []
        self.at = []
        for _ in range(layers):
            self.rows.append(torch.zeros(batch, room, size))
            self.at.append(torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    @torch.compiler.disable
    def append(self, layer, keys):
        rows, at = self.rows[layer], self.at[layer]
        n = at.item()
        rows[:, n : n + keys.shape[1]] = keys
        at += keys.shape[1]

    @torch.compiler.disable
    def __getitem__(self, layer):
        return self.rows[layer][:, : self.at[layer]]

    @torch.compiler.disable
    def length(self, layer): return self.at[layer].item()

    def reset(self):
        for at in self.at:
            at.zero_()
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 2, 24, 4)"),
            unsafe=True,
        ),
        Example(
            title="a module whose index is a property",
            before="""
class Memory(nn.Module):
    def __init__(self, batch, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, batch, room, size), persistent=False)
        self.register_buffer("place", torch.tensor([0]), persistent=False)

    @property
    def filled(self):
        return self.place.item()

    @filled.setter
    def filled(self, n):
        self.place[0] = n

    def append(self, layer, keys):
        fresh = keys.size(1)
        self.keys[layer, :, self.filled : self.filled + fresh].copy_(keys)
        self.filled = self.filled + fresh

    def __getitem__(self, layer):
        return self.keys[layer].narrow(1, 0, self.filled)

    def length(self, layer):
        return self.filled

    def reset(self):
        self.place.zero_()
""",
            after="""
class Memory(nn.Module):
    def __init__(self, batch, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, batch, room, size), persistent=False)
        self.register_buffer("place", torch.tensor([0]), persistent=False)

    @property
    @torch.compiler.disable
    def filled(self):
        return self.place.item()

    @filled.setter
    def filled(self, n):
        self.place[0] = n

    @torch.compiler.disable
    def append(self, layer, keys):
        fresh = keys.size(1)
        self.keys[layer, :, self.filled : self.filled + fresh].copy_(keys)
        self.filled = self.filled + fresh

    @torch.compiler.disable
    def __getitem__(self, layer):
        return self.keys[layer].narrow(1, 0, self.filled)

    def length(self, layer):
        return self.filled

    def reset(self):
        self.place.zero_()
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 24, 4)").replace("range(2)]", "range(1)]"),
            unsafe=True,
        ),
        Example(
            title="a module that is called",
            before="""
class Memory(nn.Module):
    def __init__(self, batch, heads, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, room, size), persistent=False)
        self.register_buffer("values", torch.zeros_like(self.keys), persistent=False)
        self.register_buffer("place", torch.zeros((), dtype=torch.long), persistent=False)

    def forward(self, keys, values):
        start = int(self.place)
        end = start + keys.shape[2]
        self.keys[:, :, start:end] = keys
        self.values[:, :, start:end] = values
        self.place.fill_(end)
        return self.keys[:, :, :end], self.values[:, :, :end]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.memory = Memory(2, 1, 24, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).unsqueeze(1).chunk(3, -1)
        k, v = self.memory(k, v)
        return F.scaled_dot_product_attention(q, k, v).squeeze(1)
""",
            after="""
class Memory(nn.Module):
    def __init__(self, batch, heads, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, room, size), persistent=False)
        self.register_buffer("values", torch.zeros_like(self.keys), persistent=False)
        self.register_buffer("place", torch.zeros((), dtype=torch.long), persistent=False)

    @torch.compiler.disable
    def forward(self, keys, values):
        start = int(self.place)
        end = start + keys.shape[2]
        self.keys[:, :, start:end] = keys
        self.values[:, :, start:end] = values
        self.place.fill_(end)
        return self.keys[:, :, :end], self.values[:, :, :end]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.memory = Memory(2, 1, 24, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).unsqueeze(1).chunk(3, -1)
        k, v = self.memory(k, v)
        return F.scaled_dot_product_attention(q, k, v).squeeze(1)
""",
            run="""
def make(): return Attention()
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (5, 1, 1, 3, 1)]
""",
            unsafe=True,
        ),
        Example(
            title="something is compiled as one graph, where a break is an error",
            before="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(1, batch, room, size)
        self.filled = torch.zeros(1, dtype=torch.long)

    def append(self, layer, keys):
        n = self.filled[layer].item()
        self.keys[layer, :, n : n + keys.shape[1]] = keys
        self.filled[layer] += keys.shape[1]

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.length(layer)]

    def length(self, layer):
        return self.filled[layer].item()

    def reset(self):
        self.filled.zero_()


def compiled(function):
    return torch.compile(function, fullgraph=True)
""",
            after="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(1, batch, room, size)
        self.filled = torch.zeros(1, dtype=torch.long)

    @torch.compiler.disable
    def append(self, layer, keys):
        n = self.filled[layer].item()
        self.keys[layer, :, n : n + keys.shape[1]] = keys
        self.filled[layer] += keys.shape[1]

    @torch.compiler.disable
    def __getitem__(self, layer):
        return self.keys[layer, :, : self.length(layer)]

    @torch.compiler.disable
    def length(self, layer):
        return self.filled[layer].item()

    def reset(self):
        self.filled.zero_()


def compiled(function):
    return torch.compile(function, fullgraph=True)
""",
            run=CACHED_DECODING.replace("MEMORY", "Memory(2, 24, 4)").replace("range(2)]", "range(1)]"),
            unsafe=True,
        ),
        Example(
            title="a list of integers, and a break behind the writes that is spelled for old releases",
            before='''
try:
    from torch._dynamo import graph_break as _graph_break
except ImportError:
    _graph_break = None

from torch.compiler import is_compiling as _is_compiling


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not _is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers

    def update(self, layer, keys):
        """Write keys, and give back all."""
        assert keys.dim() == 3, "keys of one layer"

        # behind the last ones
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end] = keys

        if _graph_break is not None and _is_compiling():
            _graph_break()  # Python state
        self.filled[layer] = int(end)
        return self.keys[layer, :, :end]
''',
            after='''
try:
    from torch._dynamo import graph_break as _graph_break
except ImportError:
    _graph_break = None

from torch.compiler import is_compiling as _is_compiling


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not _is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers

    def update(self, layer, keys):
        """Write keys, and give back all."""
        assert keys.dim() == 3, "keys of one layer"

        if _graph_break is not None and _is_compiling():
            _graph_break()
        # behind the last ones
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end] = keys

        # Python state
        self.filled[layer] = int(end)
        return self.keys[layer, :, :end]
''',
            run=_ONE.replace("(5, 1, 1, 3)", "(2, 2, 2, 2)"),
            strategies={"kv-cache": "graph-break"},
        ),
        Example(
            title="new breaks, before the first line that touches the state",
            before='''
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = 0

    def append(self, keys):
        """Write keys (B, fresh, size)."""
        fresh = keys.shape[1]
        if fresh:
            self.keys[:, self.filled : self.filled + fresh] = keys
            self.filled += fresh

    def all(self): return self.keys[:, : self.filled]  # a view

    def capacity(self):
        return self.keys.shape[1]
''',
            after='''
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = 0

    def append(self, keys):
        """Write keys (B, fresh, size)."""
        fresh = keys.shape[1]
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        if fresh:
            self.keys[:, self.filled : self.filled + fresh] = keys
            self.filled += fresh

    def all(self):
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        return self.keys[:, : self.filled]  # a view

    def capacity(self):
        return self.keys.shape[1]
''',
            run="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, memory):
        memory.append(self.inner(x))
        return memory.all().sum(1) / memory.capacity()

def go(net):
    memory = Memory(2, 24, 4)
    return [net(torch.linspace(-1, 1, 8 * n).view(2, n, 4), memory) for n in (5, 1, 1, 3)]

def hook(net, backend):  # the cache is used between compiled blocks, where a break is nothing
    net.inner.compile(backend=backend)
    return net

def make(): return Net()
calls = [go, go]
""",
            gain=False,
            strategies={"kv-cache": "graph-break"},
        ),
        Example(
            title="a list of integers, with the methods marked",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        self.filled = [0 for _ in range(layers)]

    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer][:, self.filled[layer] : end] = keys
        torch._dynamo.graph_break()
        self.filled[layer] = end
        return self.keys[layer][:, :end]

    def length(self, layer):
        return self.filled[layer]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        self.filled = [0 for _ in range(layers)]

    @torch.compiler.disable
    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer][:, self.filled[layer] : end] = keys
        torch._dynamo.graph_break()
        self.filled[layer] = end
        return self.keys[layer][:, :end]

    @torch.compiler.disable
    def length(self, layer):
        return self.filled[layer]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
            run=_ONE,
            strategies={"kv-cache": "eager-zone"},
        ),
        Example(
            title="one graph: a break behind the writes is taken out",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers

    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer, :, self.filled[layer] : end] = keys
        # Python state
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        self.filled[layer] = end
        return self.keys[layer, :, :end]
""",
            after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers

    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer, :, self.filled[layer] : end] = keys
        # Python state
        self.filled[layer] = end
        return self.keys[layer, :, :end]
""",
            run=_ONE,
            strategies={"kv-cache": "single-graph"},
        ),
        Example(
            title="one graph: breaks through an alias that may be missing",
            before="""
try:
    _break = torch._dynamo.graph_break
except AttributeError:
    _break = None


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        for keys in self.keys:
            torch._dynamo.mark_static_address(keys)
        self.filled = [0] * layers

    def length(self, layer):
        torch._dynamo.graph_break()
        return self.filled[layer]

    def update(self, layer, keys):
        if _break is not None and torch.compiler.is_compiling():
            _break()
        start, end = self.length(layer), self.length(layer) + keys.size(1)
        self.keys[layer][:, start:end].copy_(keys)
        self.filled[layer] = end
        return self.keys[layer][:, :end]
""",
            after="""
try:
    _break = torch._dynamo.graph_break
except AttributeError:
    _break = None


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        for keys in self.keys:
            torch._dynamo.mark_static_address(keys)
        self.filled = [0] * layers

    def length(self, layer):
        return self.filled[layer]

    def update(self, layer, keys):
        start, end = self.length(layer), self.length(layer) + keys.size(1)
        self.keys[layer][:, start:end].copy_(keys)
        self.filled[layer] = end
        return self.keys[layer][:, :end]
""",
            run=_ONE,
            strategies={"kv-cache": "single-graph"},
        ),
        Example(
            title="one graph: an index that is a part of the module's state",
            before="""
class Memory(nn.Module):
    def __init__(self, batch, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, room, size))
        self.register_buffer("filled", torch.tensor(0))

    def forward(self, keys):
        n = self.filled.item()
        self.keys[:, n : n + keys.shape[1]] = keys
        self.filled += keys.shape[1]
        return self.keys[:, : n + keys.shape[1]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(4, 8)
        self.memory = Memory(2, 24, 4)

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        past = self.memory(k)
        return (q @ past.transpose(1, 2)).softmax(-1) @ past
""",
            after=None,
            run="""
def make(): return Net()
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (5, 1, 1, 3, 1)]
""",
            strategies={"kv-cache": "single-graph"},
        ),
        Example(
            title="one graph: integers that the model keeps, and Dynamo compiles in",
            before="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        torch._dynamo.graph_break()
        self.filled = end
        return self.keys[:, :end]


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
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (5, 1, 1, 3, 1)]
""",
            strategies={"kv-cache": "single-graph"},
        ),
        Example(
            title="a list of integers needs no break",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.filled = [0] * layers

    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer, :, self.filled[layer] : end] = keys
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        self.filled[layer] = end
        return self.keys[layer, :, :end]
""",
            after=None,
            run=_ONE,
        ),
        Example(
            title="attention with its cache inside",
            before="""
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(4, 4)
        self.register_buffer("keys", torch.zeros(2, 24, 4), persistent=False)
        self.register_buffer("filled", torch.tensor(0), persistent=False)

    def forward(self, x):
        n = self.filled.item()
        self.keys[:, n : n + x.shape[1]] = self.kv(x)
        self.filled += x.shape[1]
        past = self.keys[:, : n + x.shape[1]]
        return F.scaled_dot_product_attention(x, past, past)
""",
            after=None,
            run="""
def make(): return Attention()
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (5, 1, 1, 3, 1)]
""",
        ),
        Example(
            title="how much is written is itself tensor data",
            before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros(batch, dtype=torch.long)  # rows differ

    def update(self, lengths, keys):
        for row in range(keys.shape[0]):
            n = int(lengths[row].item())
            self.keys[row, self.filled[row] : self.filled[row] + n] = keys[row, :n]
        self.filled += lengths
        return self.keys
""",
            after=None,
            run="""
def make():
    def update(keys, lengths):
        return Memory(1, 2, 8, 3).update(lengths, keys)
    return update

calls = [(torch.ones(2, 3, 3), torch.tensor([1, 3]))]
""",
        ),
    )

    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="an index in Python integers, without a break",
            source="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.filled = [0] * layers

    def append(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer, :, self.filled[layer] : end] = keys
        self.filled[layer] = end

    def __getitem__(self, layer):
        return self.keys[layer, :, : self.filled[layer]]
""",
        ),
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
            title="methods that are eager zones already",
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
            title="a queue of negatives that wraps round",
            source="""
class Queue(nn.Module):
    def __init__(self, heads, size, room):
        super().__init__()
        self.register_buffer("queue", torch.randn(heads, size, room))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, keys):
        start = int(self.place)
        self.queue[:, :, start : start + keys.shape[2]] = keys
        self.place[0] = (start + keys.shape[2]) % self.queue.shape[2]
        return self.queue.clone()
""",
        ),
        NearMiss(
            title="a replay buffer, filled along its first dimension and sampled",
            source="""
class Replay:
    def __init__(self, room):
        self.seen = torch.zeros(room, 3, 8, 8)
        self.filled = torch.zeros((), dtype=torch.long)

    def add(self, pictures):
        n = self.filled.item()
        self.seen[n : n + pictures.shape[0]] = pictures
        self.filled += pictures.shape[0]

    def sample(self, k):
        return self.seen[torch.randint(0, self.filled.item(), (k,))]
""",
        ),
        NearMiss(
            title="running statistics and a counter",
            source="""
class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 1, size))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        self.mean[:, :, :] = self.mean + (x.mean((0, 1)) - self.mean) / self.steps.item()
        return x - self.mean
""",
        ),
        NearMiss(
            title="an average of weights",
            source="""
class Average:
    def __init__(self, model):
        self.steps = torch.tensor(0)
        self.kept = [torch.zeros(2, 3, 4) for _ in model.parameters()]

    def update(self, model):
        self.steps += 1
        decay = min(0.99, (1 + self.steps.item()) / (10 + self.steps.item()))
        for kept, p in zip(self.kept, model.parameters()):
            kept.copy_(decay * kept + (1 - decay) * p)
""",
        ),
        NearMiss(
            title="words that were sampled so far",
            source="""
class Words:
    def __init__(self, batch, room):
        self.ids = torch.zeros(batch, room, dtype=torch.long)
        self.filled = torch.tensor(0)

    def push(self, ids):
        n = self.filled.item()
        self.ids[:, n : n + ids.shape[1]] = ids
        self.filled += ids.shape[1]
        return self.ids[:, : n + ids.shape[1]]
""",
        ),
        NearMiss(
            title="a decorator that may look into the function",
            source="""
import functools


class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.tensor(0)

    @functools.singledispatchmethod
    def append(self, keys):
        n = self.filled.item()
        self.keys[:, n : n + keys.shape[1]] = keys
        self.filled += keys.shape[1]
        return self.keys[:, : n + keys.shape[1]]
""",
            reported=True,
        ),
    )


def _called_in_graph(cache: Cache, method: CacheMethod, facts: Facts) -> bool:
    """Calls of a plain object come through arguments; those of a module's method can be followed from forward."""
    if _decorators(method.function, facts) & (api.DISABLE | api.COMPILE):
        return False
    followed = method.only_resets or (
        facts.is_module_class(cache.cls) and any(f.function.name == "forward" for f in cache.methods)
    )
    return not followed or facts.reached(method.function)


def _findings(cache: Cache, method: CacheMethod, facts: Facts) -> Iterator[Finding]:
    strategy = facts.settings.strategy("kv-cache")
    strategy = "auto" if strategy == "static" else strategy  # which is about caches that grow
    if strategy in ("auto", "single-graph"):
        state = facts.ask(TensorStates).of(cache.cls)
        if state is None and not _read_by_host(cache, method):
            yield from _needless(cache, method, facts, strategy)
            return
        obstacle = _obstacle(state, facts)
        if state is not None and not obstacle:
            return  # FC302 makes the index Python integers, which need no break
        obstacle = f"single-graph is out: {obstacle}"
    zone = strategy == "eager-zone" or (strategy == "auto" and _read_by_host(cache, method))
    if (strategy == "auto" and not zone) or (strategy == "graph-break" and _breaks_in_time(method)):
        return
    message = "the index of a key/value cache is read or changed in compiled code"
    if strategy == "single-graph":
        yield Finding(method.function, message, assumption=obstacle, strategy=strategy)
        return
    reason = _why_not(cache, method, facts, strategy)
    if reason:
        yield Finding(method.function, message, assumption=reason, strategy=strategy)
        return
    if strategy == "auto":
        message = f"{message} ({obstacle})"
    edits = _zone(method, facts) if zone else _break(method, facts)
    risky = strategy == "auto" or facts.project.one_graph
    fix = Fix(edits, Applicability.UNSAFE if risky else Applicability.SAFE)
    yield Finding(method.function, message, fix, _ONE_GRAPH if risky else "", "eager-zone" if zone else "graph-break")


def _obstacle(state: TensorState | None, facts: Facts) -> str:
    """What keeps FC302 from making the index Python integers; "" when nothing does."""
    if state is None:
        return "what the host reads is no state that could be held in Python integers"
    if state.obstacle:
        return state.obstacle
    if state.doubts and not facts.settings.unsafe:
        return f"it is not known whether {state.doubts[0]}"
    index, _ = KVCacheMutation.counts_on
    if any(facts.silenced(index, statement) for _, statement in state.attributes):
        return f"{index} is to leave the index as it is"
    missing = sorted({*KVCacheMutation.counts_on} - facts.active)
    return f"it needs {' and '.join(missing)}, which this run leaves out" if missing else ""


def _needless(cache: Cache, method: CacheMethod, facts: Facts, strategy: str) -> Iterator[Finding]:
    """Explicit breaks in a method whose index is held in Python integers, which Dynamo traces."""
    _, flags = KVCacheMutation.counts_on
    for late in method.breaks:
        reason = facts.ask(TensorStates).kept_by_module(cache.cls) or facts.writing.why_not_removed(late)
        if strategy == "auto" and flags not in facts.active:
            reason = reason or f"without it, flags that are comparisons of sizes break the graph: that is for {flags}"
        fix = None if reason else Fix((ReplaceStatements((late,), ()),))
        yield Finding(
            late,
            "an explicit graph break splits a method of a cache whose index is held on the host",
            fix,
            reason,
            "single-graph" if fix else strategy,
        )


def _read_by_host(cache: Cache, method: CacheMethod) -> bool:
    """Whether ``method`` breaks the graph by itself, or works with what such a method returns."""
    return bool(method.host_reads) or (method.calls_reader and any(m.host_reads for m in cache.methods))


def _why_not(cache: Cache, method: CacheMethod, facts: Facts, strategy: str) -> str:
    if cache.foreign is not None:
        return f"the amount `{ast.unparse(cache.foreign)}` is itself tensor data; that needs a write through a mask"
    unknown = _decorators(method.function, facts) - _HARMLESS
    if strategy == "graph-break":
        scripted = any(d.startswith("torch.jit.") for d in unknown)
        shared = any(s is not method.first and s.lineno == method.first.lineno for s in method.function.body)
        return "it is compiled by TorchScript" if scripted else "its first statements share a line" if shared else ""
    if unknown:
        return f"what the decorator `{min(unknown)}` makes of a disabled function is not known"
    if method.computes:
        return f"the method also computes ({method.computes}), which would no longer be compiled"
    if strategy == "auto" and "capture_scalar_outputs" in facts.project.foreign_stores:
        return "capture_scalar_outputs is set somewhere, so reading one number may not break the graph"
    return ""


def _decorators(function: ast.FunctionDef, facts: Facts) -> set[str]:
    found = set()
    for d in function.decorator_list:
        target = d.func if isinstance(d, ast.Call) else d
        name = facts.syntax.qualified(target) or dotted(target) or ast.unparse(target)
        found.add("property" if name in (f"{function.name}.setter", f"{function.name}.getter") else name)
    return found


def _zone(method: CacheMethod, facts: Facts) -> tuple[Edit, ...]:
    return (Decorate(method.function, Code(facts.writing.spelling("torch.compiler.disable", method.function))),)


def _breaks_in_time(method: CacheMethod) -> bool:
    body = method.function.body
    return any(b in body and body.index(b) <= body.index(method.first) for b in method.breaks)


def _break(method: CacheMethod, facts: Facts) -> tuple[Edit, ...]:
    """The break before ``method.first``: an own one that stands in the same block further down, or a new one."""
    late = next((b for b in method.breaks if b in method.function.body), None)
    if late is not None:
        return (ReplaceStatements((late,), ()), Insert(method.first, (_again(late),)))
    asks = facts.writing.spelling("torch.compiler.is_compiling", method.function)
    breaks = facts.writing.spelling("torch._dynamo.graph_break", method.function)
    return (Insert(method.first, (Code(f"if {asks}():\n    {breaks}()"),)),)


def _again(s: ast.stmt) -> Code:
    """The explicit break ``s`` once more, as it is written."""
    if isinstance(s, ast.If):
        inner = [_again(b) for b in s.body]
        lines = "".join("\n    " + code.template.replace("\n", "\n    ") for code in inner)
        return Code(f"if {ast.unparse(s.test)}:{lines}")
    return Code(ast.unparse(s))
