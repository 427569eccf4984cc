"""What ``--strategy kv-cache=static`` makes of caches that grow, and what it leaves alone."""

from __future__ import annotations

from patcher.rule import Example
from rules.fc305_growing_cache.room_text import MAKING, READING

_STATIC = {"kv-cache": "static"}
_ROUNDING = 1e-5  # sums go over empty places too, and how long a sum is says in what order a processor adds


def _with(*names: str) -> str:
    """The functions that are written into the file, in their order."""
    texts = [text for name, text in {**READING, **MAKING}.items() if name in names]
    return "".join(f"{text}\n\n" for text in texts)


#: A model that generates for batches of 1, 3 and 2.
_GENERATE = """
def make(): return Net()

def go(batch):
    x = torch.linspace(-1, 1, batch * 40).view(batch, 5, 8)
    return lambda net: net.generate(x, 6)

calls = [go(1), go(3), go(2)]

def hook(net, backend):
    net.forward = torch.compile(net.forward, backend=backend)
    return net
"""

ROOM: tuple[Example, ...] = (
    Example(
        title="a dict in a list; an attention that asks for the length, and a position beside it",
        before="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, kv_cache=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if kv_cache is not None:
            k = torch.cat([kv_cache["key"], k], dim=2)
            v = torch.cat([kv_cache["value"], v], dim=2)
            kv_cache["key"] = k
            kv_cache["value"] = v
        else:
            kv_cache = {"key": k, "value": v}
        causal = True if q.size(2) == k.size(2) and q.size(2) > 1 else False
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)  # a mask is not needed later
        return y.transpose(1, 2).flatten(2), kv_cache


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 8)
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, kv_cache=None, start=0):
        x = x + self.table(torch.arange(start, start + x.shape[1], device=x.device))
        if kv_cache is None:
            kv_cache = [None] * len(self.layers)
        for i, layer in enumerate(self.layers):
            y, kv_cache[i] = layer(x, kv_cache[i])
            x = x + y
        return x, kv_cache

    @torch.no_grad()
    def generate(self, x, steps):
        y, cache = self(x)
        seen, found = x.shape[1], [y]
        for _ in range(steps):
            y, cache = self(torch.tanh(y[:, -1:]), cache, seen)
            seen += 1
            found.append(y)
        return torch.cat(found, dim=1)
""",
        after=_with("_join_kept", "_whole", "_attention_over", "_Kept", "_has_room", "_with_room", "_place")
        + """\
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, kv_cache=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if kv_cache is not None:
            k = _join_kept(kv_cache["key"], k, 2)
            v = _join_kept(kv_cache["value"], v, 2)
            kv_cache["key"] = k
            kv_cache["value"] = v
        else:
            kv_cache = {"key": k, "value": v}
        causal = True if q.size(2) == _whole(k).size(2) and q.size(2) > 1 else False
        y = _attention_over(k)(q, _whole(k), _whole(v), is_causal=causal)  # a mask is not needed later
        return y.transpose(1, 2).flatten(2), kv_cache


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 8)
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, kv_cache=None, start=0):
        x = x + self.table(torch.arange(x.shape[1], device=x.device).add(start))
        if kv_cache is None:
            kv_cache = [None] * len(self.layers)
        for i, layer in enumerate(self.layers):
            y, kv_cache[i] = layer(x, kv_cache[i])
            x = x + y
        return x, kv_cache

    @torch.no_grad()
    def generate(self, x, steps):
        y, cache = self(x)
        cache = _with_room(cache, 2, more=steps)
        seen, found = x.shape[1], [y]
        for _ in range(steps):
            y, cache = self(torch.tanh(y[:, -1:]), cache, _place(seen, cache))
            seen += 1
            found.append(y)
        return torch.cat(found, dim=1)
""",
        run=_GENERATE,
        unsafe=True,
        strategies=_STATIC,
        tolerance=_ROUNDING,
    ),
    Example(
        title="a model that nobody here calls in a loop",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        return F.scaled_dot_product_attention(q, k, v), (k, v)
""",
        after=_with("_join_kept", "_whole", "_attention_over", "_Kept", "_has_room", "_with_room")
        + """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            k = _join_kept(layer_past[0], k, -2)
            v = _join_kept(layer_past[1], v, -2)
        return _attention_over(k)(q, _whole(k), _whole(v)), (k, v)
""",
        run="""
def go(net):
    outputs, past = [], None
    for n in (5, 1, 1, 1, 1):
        out, past = net(torch.linspace(-1, 1, 16 * n).view(2, n, 8), past)
        if "_with_room" in globals() and past is not None:
            past = _with_room(past, -2, room=9)
        outputs.append(out)
    return outputs

def make(): return Net()
calls = [go]
""",
        unsafe=True,
        strategies=_STATIC,
        tolerance=_ROUNDING,
        gain=False,
    ),
)
