"""What CacheBufferAddress reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

#: A model that is given ``MEMORY``: a first read, then single steps, twice.
_RUN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.ModuleList([nn.Linear(4, 12) for _ in range(2)])

    def forward(self, x, memory):
        for layer, qkv in enumerate(self.qkv):
            q, k, v = qkv(x).chunk(3, -1)
            k, v = memory.update(layer, k, v)
            x = x + (q @ k.transpose(1, 2)).softmax(-1) @ v
        return x

def go(net):
    outputs, memory = [], MEMORY
    for _ in range(2):
        x = torch.linspace(-1, 1, 40).view(2, 5, 4)
        for _ in range(4):
            x = net(x, memory)
            outputs.append(x.clone())
            x = x[:, -1:]
        memory.reset()
    return outputs

def make(): return Net()
calls = [go, go]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="keys and values of all layers, how far each is filled in a list",
        before='''
from dataclasses import dataclass, field
from typing import List


@dataclass
class Memory:
    """Keys and values (layers, B, room, size)."""

    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = field(init=False)
    _values: torch.Tensor = field(init=False)
    _filled: List[int] = field(init=False)

    def __post_init__(self):
        shape = (self.layers, self.batch, self.room, self.size)
        self._keys = torch.zeros(shape)
        self._values = torch.zeros_like(self._keys)  # alike
        self._filled = [0] * self.layers

    def update(self, layer, keys, values):
        start = self._filled[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._values[layer, :, start:end] = values
        self._filled[layer] = end
        return self._keys[layer, :, :end], self._values[layer, :, :end]

    def reset(self):
        self._filled[:] = [0] * len(self._filled)
''',
        after='''
from dataclasses import dataclass, field
from typing import List


@dataclass
class Memory:
    """Keys and values (layers, B, room, size)."""

    layers: int
    batch: int
    room: int
    size: int
    _keys: torch.Tensor = field(init=False)
    _values: torch.Tensor = field(init=False)
    _filled: List[int] = field(init=False)

    def __post_init__(self):
        shape = (self.layers, self.batch, self.room, self.size)
        self._keys = torch.zeros(shape)
        self._values = torch.zeros_like(self._keys)  # alike
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self._keys)
            torch._dynamo.mark_static_address(self._values)
        self._filled = [0] * self.layers

    def update(self, layer, keys, values):
        start = self._filled[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._values[layer, :, start:end] = values
        self._filled[layer] = end
        return self._keys[layer, :, :end], self._values[layer, :, :end]

    def reset(self):
        self._filled[:] = [0] * len(self._filled)
''',
        run=_RUN.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        gain=False,
    ),
    Example(
        title="both in one statement, in a cache that compiled code makes",
        before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys, self.values = torch.zeros(layers, batch, room, size), torch.zeros(layers, batch, room, size)
        self.filled = [0 for _ in range(layers)]

    def update(self, layer, keys, values):
        start, n = self.filled[layer], keys.shape[1]
        self.keys[layer, :, start : start + n].copy_(keys)
        self.values[layer, :, start : start + n].copy_(values)
        self.filled[layer] += n
        return self.keys[layer, :, : start + n], self.values[layer, :, : start + n]

    def reset(self):
        for layer in range(len(self.filled)):
            self.filled[layer] = 0
""",
        after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys, self.values = torch.zeros(layers, batch, room, size), torch.zeros(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
            torch._dynamo.mark_static_address(self.values)
        self.filled = [0 for _ in range(layers)]

    def update(self, layer, keys, values):
        start, n = self.filled[layer], keys.shape[1]
        self.keys[layer, :, start : start + n].copy_(keys)
        self.values[layer, :, start : start + n].copy_(values)
        self.filled[layer] += n
        return self.keys[layer, :, : start + n], self.values[layer, :, : start + n]

    def reset(self):
        for layer in range(len(self.filled)):
            self.filled[layer] = 0
""",
        run="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        memory = Memory(2, 2, 24, 4)
        for part in x.split(2, 1):
            q, k, v = self.qkv(part).chunk(3, -1)
            k, v = memory.update(0, k, v)
            x = x + ((q @ k.transpose(1, 2)).softmax(-1) @ v).sum(1, keepdim=True)
        return x

def make(): return Net()
calls = [(torch.linspace(-1, 1, 8 * n).view(2, n, 4),) for n in (6, 8)]
""",
        gain=False,
    ),
    Example(
        title="a buffer for each layer, in lists",
        before="""
class Memory:
    def __init__(self, layers, batch, room, size, buffer=None):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        self.values = []
        self.filled = [0] * layers
        for _ in range(layers):
            # like the keys
            self.values.append(torch.zeros(batch, room, size, device=buffer))

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.size(1)
        self.keys[layer][:, start:end] = keys
        self.values[layer][:, start:end] = values
        self.filled[layer] = end
        return self.keys[layer][:, :end], self.values[layer][:, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        after="""
class Memory:
    def __init__(self, layers, batch, room, size, buffer=None):
        self.keys = [torch.zeros(batch, room, size) for _ in range(layers)]
        if not torch.compiler.is_compiling():
            for buffer_2 in self.keys:
                torch._dynamo.mark_static_address(buffer_2)
        self.values = []
        self.filled = [0] * layers
        for _ in range(layers):
            # like the keys
            self.values.append(torch.zeros(batch, room, size, device=buffer))
            if not torch.compiler.is_compiling():
                torch._dynamo.mark_static_address(self.values[-1])

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.size(1)
        self.keys[layer][:, start:end] = keys
        self.values[layer][:, start:end] = values
        self.filled[layer] = end
        return self.keys[layer][:, :end], self.values[layer][:, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        run=_RUN.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        gain=False,
    ),
    Example(
        title="local names first",
        before="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.shape = (layers, batch, room, size)
        keys = torch.empty(self.shape)
        values = torch.empty_like(keys)
        self.keys = keys
        self.values = values
        self.filled = [0] * layers

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end] = keys
        self.values[layer, :, start:end] = values
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        after="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.shape = (layers, batch, room, size)
        keys = torch.empty(self.shape)
        values = torch.empty_like(keys)
        self.keys = keys
        self.values = values
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
            torch._dynamo.mark_static_address(self.values)
        self.filled = [0] * layers

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end] = keys
        self.values[layer, :, start:end] = values
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        run=_RUN.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        gain=False,
    ),
    Example(
        title="one object for each layer, torch under another name",
        before="""
import torch as t


class Layer:
    def __init__(self, batch, room, size):
        self._keys: t.Tensor = t.zeros(batch, room, size)
        self._values: t.Tensor = t.zeros(batch, room, size)
        self._filled = 0

    def update(self, keys, values):
        end = self._filled + keys.shape[1]
        self._keys[:, self._filled : end] = keys
        self._values[:, self._filled : end] = values
        self._filled = end
        return self._keys[:, :end], self._values[:, :end]


class Memory:
    def __init__(self, layers, *shape):
        self.layers = [Layer(*shape) for _ in range(layers)]

    def update(self, layer, keys, values):
        return self.layers[layer].update(keys, values)

    def reset(self):
        for layer in self.layers:
            layer._filled = 0
""",
        after="""
import torch as t


class Layer:
    def __init__(self, batch, room, size):
        self._keys: t.Tensor = t.zeros(batch, room, size)
        self._values: t.Tensor = t.zeros(batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self._keys)
            torch._dynamo.mark_static_address(self._values)
        self._filled = 0

    def update(self, keys, values):
        end = self._filled + keys.shape[1]
        self._keys[:, self._filled : end] = keys
        self._values[:, self._filled : end] = values
        self._filled = end
        return self._keys[:, :end], self._values[:, :end]


class Memory:
    def __init__(self, layers, *shape):
        self.layers = [Layer(*shape) for _ in range(layers)]

    def update(self, layer, keys, values):
        return self.layers[layer].update(keys, values)

    def reset(self):
        for layer in self.layers:
            layer._filled = 0
""",
        run=_RUN.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        gain=False,
    ),
    Example(
        title="one after the other, filled with numbers",
        before="""
class Memory(object):
    def __init__(self, layers, batch, room, size):
        self.keys = torch.full((layers, batch, room, size), 0.0)
        self.filled = [0] * layers
        self.values = torch.ones(layers, batch, room, size)

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end].copy_(keys)
        self.values[layer, :, start:end].copy_(values)
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        after="""
class Memory(object):
    def __init__(self, layers, batch, room, size):
        self.keys = torch.full((layers, batch, room, size), 0.0)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.keys)
        self.filled = [0] * layers
        self.values = torch.ones(layers, batch, room, size)
        if not torch.compiler.is_compiling():
            torch._dynamo.mark_static_address(self.values)

    def update(self, layer, keys, values):
        start = self.filled[layer]
        end = start + keys.shape[1]
        self.keys[layer, :, start:end].copy_(keys)
        self.values[layer, :, start:end].copy_(values)
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reset(self):
        self.filled = [0] * len(self.filled)
""",
        run=_RUN.replace("MEMORY", "Memory(2, 2, 24, 4)"),
        gain=False,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="marked already, one by one",
        source="""
from torch._dynamo import mark_static_address


class Memory:
    def __init__(self, layers, batch, room, size):
        keys = torch.zeros(layers, batch, room, size)
        self.values = [torch.zeros(batch, room, size) for _ in range(layers)]
        mark_static_address(keys)
        for values in self.values:
            mark_static_address(values, guard=True)
        self.keys = keys
        self.filled = [0] * layers

    def update(self, layer, keys, values):
        start, end = self.filled[layer], self.filled[layer] + keys.shape[1]
        self.keys[layer, :, start:end] = keys
        self.values[layer][:, start:end] = values
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer][:, :end]
""",
    ),
    NearMiss(
        title="marked already, by a method and through an alias that may be missing",
        source="""
_mark = getattr(torch._dynamo, "mark_static_address", None)


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.values = torch.zeros(layers, batch, room, size)
        self.filled = [0] * layers
        self._pin()

    def _pin(self):
        if _mark is not None:
            for name in ("keys", "values"):
                _mark(getattr(self, name))

    def update(self, layer, keys, values):
        start, end = self.filled[layer], self.filled[layer] + keys.shape[1]
        self.keys[layer, :, start:end] = keys
        self.values[layer, :, start:end] = values
        self.filled[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]
""",
    ),
    NearMiss(
        title="marked already, where the cache is made",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]


def fresh(batch):
    memory = Memory(batch, 24, 4)
    torch._dynamo.mark_static_address(memory.keys)
    return memory
""",
    ),
    NearMiss(
        title="buffers of a module",
        source="""
class Memory(nn.Module):
    def __init__(self, batch, room, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, room, size))
        self.values = torch.zeros(batch, room, size)
        self.filled = 0

    def forward(self, keys, values):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.values[:, self.filled : end] = values
        self.filled = end
        return self.keys[:, :end], self.values[:, :end]
""",
    ),
    NearMiss(
        title="an index on the device, which compiled code reads",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros((), dtype=torch.long)

    @property
    def length(self):
        return int(self.filled)

    def update(self, keys):
        places = self.filled + torch.arange(keys.shape[1], device=keys.device)
        self.keys.index_copy_(1, places, keys)
        self.filled += keys.shape[1]
        return self.keys

    def forget(self):
        self.filled.zero_()


class Net(nn.Module):
    def forward(self, x, memory: Memory):
        return x + memory.update(x).mean(1, keepdim=True) * memory.length
""",
    ),
    NearMiss(
        title="an index on the device, which a test of the cache reads",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros((), dtype=torch.long)

    def __bool__(self):
        return int(self.filled) > 0

    def update(self, keys):
        places = self.filled + torch.arange(keys.shape[1], device=keys.device)
        self.keys.index_copy_(1, places, keys)
        self.filled += keys.shape[1]
        return self.keys

    def forget(self):
        self.filled.zero_()


class Net(nn.Module):
    def forward(self, x, memory: Memory):
        return x + memory.update(x).mean(1, keepdim=True) if memory else x
""",
    ),
    NearMiss(
        title="an index on the device, and nobody who is seen to compile",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros((), dtype=torch.long)

    @property
    def length(self):
        return int(self.filled)

    def update(self, keys):
        places = self.filled + torch.arange(keys.shape[1], device=keys.device)
        self.keys.index_copy_(1, places, keys)
        self.filled += keys.shape[1]
        return self.keys

    def forget(self):
        self.filled.zero_()
""",
    ),
    NearMiss(
        title="an index in a tensor",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = torch.zeros((), dtype=torch.long)

    def update(self, keys):
        start = self.filled.item()
        self.keys[:, start : start + keys.shape[1]] = keys
        self.filled += keys.shape[1]
        return self.keys[:, : start + keys.shape[1]]
""",
    ),
    NearMiss(
        title="writes in an eager zone",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    @torch.compiler.disable
    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]

    def __len__(self):
        return self.filled
""",
    ),
    NearMiss(
        title="a dict of buffers",
        source="""
class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = {i: torch.zeros(batch, room, size) for i in range(layers)}
        self.filled = [0] * layers

    def update(self, layer, keys):
        end = self.filled[layer] + keys.shape[1]
        self.keys[layer][:, self.filled[layer] : end] = keys
        self.filled[layer] = end
        return self.keys[layer][:, :end]
""",
        reported=True,
    ),
    NearMiss(
        title="a base class that nobody knows",
        source="""
from elsewhere import Store


class Memory(Store):
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]
""",
        reported=True,
    ),
    NearMiss(
        title="rows in the order of the best beams",
        source="""
class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]

    def reorder(self, beams):
        self.keys = self.keys.index_select(0, beams)
""",
        reported=True,
    ),
    NearMiss(
        title="a file that scripts, which marks do not bear",
        source="""
class Memory:
    def __init__(self, batch: int, room: int, size: int):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]


@torch.jit.script
def first(x: torch.Tensor) -> torch.Tensor:
    return Memory(x.shape[0], 24, 4).update(x)
""",
        reported=True,
    ),
    NearMiss(
        title="a project that freezes what is marked",
        source="""
torch._inductor.config.freezing = True


class Memory:
    def __init__(self, batch, room, size):
        self.keys = torch.zeros(batch, room, size)
        self.filled = 0

    def update(self, keys):
        end = self.filled + keys.shape[1]
        self.keys[:, self.filled : end] = keys
        self.filled = end
        return self.keys[:, :end]
""",
        reported=True,
    ),
)
