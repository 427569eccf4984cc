"""What GrowingCache reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.fc305_growing_cache.room_examples import ROOM

#: A model of two layers whose attention takes a ``Memory``: a first read, then single steps.
_RUN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, memory):
        for layer in range(2):
            q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4)
            k, v = memory.update(k, v, layer)
            x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x

def go(net):
    memory = Memory()
    return [net(torch.linspace(-1, 1, 16 * n).view(2, n, 8), memory) for n in (5, 1, 1, 1, 1)]

def make(): return Net()
calls = [go]
"""

#: A model that keeps its own state.
_OWN = """
def go(net):
    return [net(torch.linspace(-1, 1, 16 * n).view(2, n, 8)) for n in (5, 1, 1, 1, 1)]

def make(): return Net()
calls = [go]
"""

#: A model that is given ``EMPTY`` first, and then what it gave back.
_BACK = """
def go(net):
    outputs, past = [], EMPTY
    for n in (5, 1, 1, 1, 1):
        out, past = net(torch.linspace(-1, 1, 16 * n).view(2, n, 8), past)
        outputs.append(out)
    return outputs

def make(): return Net()
calls = [go]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="two attributes, empty at first",
        before="""class Memory:
    def __init__(self):
        self.k = [None, None]
        self.v = [None, None]

    def update(self, k, v, layer):
        if self.k[layer] is None:
            self.k[layer], self.v[layer] = k, v
        else:
            self.k[layer] = torch.cat([self.k[layer], k], dim=2)
            self.v[layer] = torch.cat([self.v[layer], v], dim=2)
        return self.k[layer], self.v[layer]
""",
        after=None,
        run=_RUN,
    ),
    Example(
        title="the module's own attribute, through a name",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(8, 8)
        self.past = None

    def forward(self, x):
        k = self.kv(x).view(2, -1, 2, 4).transpose(1, 2)
        k = k if self.past is None else torch.concat((self.past, k), 2)
        self.past = k
        return F.scaled_dot_product_attention(x.view(2, -1, 2, 4).transpose(1, 2), k, k)

    def reset(self):
        self.past = None
""",
        after=None,
        run=_OWN,
    ),
    Example(
        title="entries of a dict that is handed in",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, block_cache=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if block_cache is not None and block_cache["key"] is not None:
            past, values = block_cache["key"], block_cache["value"]
            k = torch.cat([past, k], dim=1)
            v = torch.cat([values, v], dim=1)
            block_cache["key"] = k
            block_cache["value"] = v
        else:
            block_cache = {"key": k, "value": v}
        return F.scaled_dot_product_attention(q, k, v), block_cache
""",
        after=None,
        run=_BACK.replace("EMPTY", "None"),
    ),
    Example(
        title="a pair comes in and a longer one goes out",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            past_key, past_value = layer_past
            k = torch.cat((past_key, k), dim=-2)
            v = torch.cat((past_value, v), dim=-2)
        present = (k, v)
        return F.scaled_dot_product_attention(q, k, v), present
""",
        after=None,
        run=_BACK.replace("EMPTY", "None"),
    ),
    Example(
        title="a cache for each layer, in a loop",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x, caches):
        kept = []
        for layer, cache in zip(self.layers, caches):
            k = torch.cat([cache, layer(x)], dim=1)
            kept.append(k)
            x = F.scaled_dot_product_attention(x, k, k)
        return x, kept
""",
        after=None,
        run=_BACK.replace("EMPTY", "[torch.zeros(2, 2, 8), torch.zeros(2, 2, 8)]"),
    ),
    *ROOM,
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a window that keeps its size",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.zeros(2, 2, 8, 4)

    def forward(self, k):
        self.k = torch.cat([self.k[:, :, 1:], k], dim=2)
        return self.k
""",
    ),
    NearMiss(
        title="a window that is cut afterwards",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.zeros(2, 2, 8, 4)

    def forward(self, k):
        self.k = torch.cat([self.k, k], dim=2)
        if self.k.shape[2] > 8:
            self.k = self.k[:, :, -8:]
        return self.k
""",
    ),
    NearMiss(
        title="a window that comes in and goes out",
        source="""class Net(nn.Module):
    def forward(self, x, conv_cache=None):
        if conv_cache is not None:
            x = torch.cat([conv_cache, x], dim=2)
        conv_cache = x[:, :, -3:]
        return x.mean(2), conv_cache
""",
    ),
    NearMiss(
        title="a table that is made longer when more of it is asked for",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(1, 16, 8)

    def forward(self, x):
        self.extend(x.shape[1])
        return x + self.table[:, : x.shape[1]]

    def extend(self, length):
        known, width = self.table.size(1), self.table.size(2)
        if length <= known:
            return
        more = torch.arange(known, length).view(1, -1, 1).expand(1, -1, width) / width
        self.table = torch.cat([self.table, more], dim=1)
""",
    ),
    NearMiss(
        title="a class token and a prompt",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))

    def forward(self, x, prompt):
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
        prompt = torch.cat([prompt, x], dim=1)
        return prompt, x
""",
    ),
    NearMiss(
        title="features that a decoder joins to those of the encoder",
        source="""class Net(nn.Module):
    def forward(self, features, x):
        finer = torch.cat([features[0], x], dim=1)
        coarser = torch.cat([features[1], F.max_pool2d(finer, 2)], dim=1)
        return finer, coarser
""",
    ),
    NearMiss(
        title="outputs of one call, collected anew each time",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.seen = []

    def forward(self, x):
        self.seen = []
        for layer in self.layers:
            x = layer(x)
            self.seen.append(x.unflatten(-1, (2, 4)).transpose(1, 2))
        return torch.cat(self.seen, dim=2)
""",
    ),
    NearMiss(
        title="words and masks, which have two dimensions",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ids = torch.zeros(2, 1, dtype=torch.long)

    def forward(self, ids, past_mask=None):
        self.ids = torch.cat([self.ids, ids], dim=1)
        mask = torch.cat([past_mask, torch.ones_like(ids)], dim=-1)
        return self.ids, mask
""",
    ),
    NearMiss(
        title="code that is never compiled",
        source="""def extend(past, k):
    past["key"] = torch.cat([past["key"], k], dim=2)
    return past


class Net(nn.Module):
    @torch.compiler.disable
    def extend(self, past, k):
        past["key"] = torch.cat([past["key"], k], dim=2)

    def forward(self, x):
        return x
""",
    ),
    NearMiss(
        title="more room, when there is too little",
        source="""class Memory:
    def __init__(self, room):
        self.k = torch.zeros(2, 2, room, 4)
        self.n = 0

    def update(self, k):
        if self.n + k.shape[2] > self.k.shape[2]:
            self.k = torch.cat([self.k, torch.zeros_like(self.k)], dim=2)
        self.k[:, :, self.n : self.n + k.shape[2]] = k
        self.n += k.shape[2]
        return self.k[:, :, : self.n]


class Net(nn.Module):
    def forward(self, x, memory):
        return memory.update(x)
""",
    ),
    NearMiss(
        title="a past that is put in front of the input, and that nobody keeps",
        source="""\
class Guided(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, hidden, history=None, scale: float = 1.0):
        if history is not None:
            hidden = torch.cat([history, hidden], dim=1)
        hidden_states = self.proj(hidden[:, :, :]) * scale
        return hidden, hidden_states
""",
    ),
)
