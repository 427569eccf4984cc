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
        title="tuples, more heads for the queries, a softmax by hand, a length that says where the input starts",
        before="""def more_heads(x, n):
    b, h, t, d = x.shape
    return x[:, :, None].expand(b, h, n, t, d).reshape(b, h * n, t, d)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, layer_past=None):
        q = self.q(x).view(x.shape[0], -1, 4, 2).transpose(1, 2)
        k, v = self.kv(x).view(x.shape[0], -1, 2, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            past_key, past_value = layer_past
            k = torch.cat((past_key, k), dim=-2)
            v = torch.cat((past_value, v), dim=-2)
        present = (k, v)
        k, v = more_heads(k, 2), more_heads(v, 2)
        scores = q @ k.transpose(-2, -1) / 2
        if layer_past is None:
            hidden = torch.ones(q.size(2), q.size(2), dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), present


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.linspace(-1, 1, 320).view(40, 8))
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, past_key_values=None):
        past_length = past_key_values[0][0].size(-2) if past_key_values is not None else 0
        x = x + self.places[past_length : past_length + x.shape[1]]
        presents = ()
        for layer, past in zip(self.layers, past_key_values or [None] * 2):
            y, present = layer(x, past)
            x = x + y
            presents = presents + (present,)
        return x, presents

    @torch.no_grad()
    def generate(self, x, steps):
        past, found = None, []
        for _ in range(steps):
            y, past = self(x, past)
            x = torch.tanh(y[:, -1:])
            found.append(x)
        return torch.cat(found, dim=1)
""",
        after=_with("_join_kept", "_whole", "_hide_empty", "_length_of", "_Kept", "_has_room", "_with_room")
        + """\
def more_heads(x, n):
    b, h, t, d = x.shape
    return x[:, :, None].expand(b, h, n, t, d).reshape(b, h * n, t, d)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, layer_past=None):
        q = self.q(x).view(x.shape[0], -1, 4, 2).transpose(1, 2)
        k, v = self.kv(x).view(x.shape[0], -1, 2, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            past_key, past_value = layer_past
            k = _join_kept(past_key, k, -2)
            v = _join_kept(past_value, v, -2)
        present = (k, v)
        kept_k = k
        k, v = more_heads(_whole(k), 2), more_heads(_whole(v), 2)
        scores = q @ k.transpose(-2, -1) / 2
        if layer_past is None:
            hidden = torch.ones(q.size(2), q.size(2), dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = F.softmax(_hide_empty(kept_k, scores), dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), present


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.linspace(-1, 1, 320).view(40, 8))
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, past_key_values=None):
        past_length = _length_of(past_key_values[0][0], -2) if past_key_values is not None else 0
        x = x + self.places[torch.arange(x.shape[1], device=self.places.device).add(past_length)]
        presents = ()
        for layer, past in zip(self.layers, past_key_values or [None] * 2):
            y, present = layer(x, past)
            x = x + y
            presents = presents + (present,)
        return x, presents

    @torch.no_grad()
    def generate(self, x, steps):
        past, found = None, []
        for _ in range(steps):
            y, past = self(x, past)
            past = _with_room(past, -2, more=steps)
            x = torch.tanh(y[:, -1:])
            found.append(x)
        return torch.cat(found, dim=1)
""",
        run=_GENERATE,
        unsafe=True,
        strategies=_STATIC,
        tolerance=_ROUNDING,
    ),
    Example(
        title="rows of a mask that stands ready, as many as there are queries, up to the last key",
        before="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("bias", torch.ones(40, 40, dtype=torch.bool).tril().view(1, 1, 40, 40))

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        scores = q @ k.transpose(-2, -1) / 2
        query_length, key_length = q.size(-2), k.size(-2)
        seen = self.bias[:, :, key_length - query_length : key_length, :key_length]
        weights = torch.where(seen, scores, float("-inf")).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2), (k, v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, past_key_values=None):
        presents = []
        for i, layer in enumerate(self.layers):
            y, present = layer(x, past_key_values[i] if past_key_values is not None else None)
            x = x + y
            presents.append(present)
        return x, presents

    @torch.no_grad()
    def generate(self, x, steps):
        past, found = None, []
        for _ in range(steps):
            y, past = self(x, past_key_values=past)
            x = torch.tanh(y[:, -1:])
            found.append(x)
        return torch.cat(found, dim=1)
""",
        after=_with(
            "_join_kept", "_whole", "_hide_empty", "_last_places", "_as_wide", "_Kept", "_has_room", "_with_room"
        )
        + """\
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("bias", torch.ones(40, 40, dtype=torch.bool).tril().view(1, 1, 40, 40))

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            k = _join_kept(layer_past[0], k, -2)
            v = _join_kept(layer_past[1], v, -2)
        scores = q @ _whole(k).transpose(-2, -1) / 2
        query_length, key_length = q.size(-2), _whole(k).size(-2)
        seen = _as_wide(k, self.bias[:, :, _last_places(k, query_length, key_length), :key_length])
        weights = _hide_empty(k, torch.where(seen, scores, float("-inf"))).softmax(-1)
        return (weights @ _whole(v)).transpose(1, 2).flatten(2), (k, v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x, past_key_values=None):
        presents = []
        for i, layer in enumerate(self.layers):
            y, present = layer(x, past_key_values[i] if past_key_values is not None else None)
            x = x + y
            presents.append(present)
        return x, presents

    @torch.no_grad()
    def generate(self, x, steps):
        past, found = None, []
        for _ in range(steps):
            y, past = self(x, past_key_values=past)
            past = _with_room(past, -2, more=steps)
            x = torch.tanh(y[:, -1:])
            found.append(x)
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
    Example(
        title="of an encoder and a decoder, the decoder's own past; another attention keeps what it has",
        before="""class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=past is None), (k, v)


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, source, past=None):
        k, v = past if past is not None else self.kv(source).chunk(2, dim=-1)
        return F.scaled_dot_product_attention(self.q(x), k, v), (k, v)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.cross = Own(), Cross()

    def forward(self, x, source, past=None):
        own, cross = past if past is not None else (None, None)
        y, own = self.own(x, own)
        z, cross = self.cross(x + y, source, cross)
        return x + y + z, (own, cross)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x, source, pasts=None):
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, source, pasts[i] if pasts is not None else None)
            presents.append(present)
        return x, presents

    @torch.no_grad()
    def generate(self, source, steps):
        x, pasts, found = source[:, :2], None, []
        for _ in range(steps):
            y, pasts = self(x, source, pasts)
            x = torch.tanh(y[:, -1:])
            found.append(x)
        return torch.cat(found, dim=1)
""",
        after=_with("_join_kept", "_whole", "_attention_over", "_Kept", "_has_room", "_with_room")
        + """\
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            k, v = _join_kept(past[0], k, 1), _join_kept(past[1], v, 1)
        return _attention_over(k)(q, _whole(k), _whole(v), is_causal=past is None), (k, v)


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, source, past=None):
        k, v = past if past is not None else self.kv(source).chunk(2, dim=-1)
        return F.scaled_dot_product_attention(self.q(x), k, v), (k, v)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.cross = Own(), Cross()

    def forward(self, x, source, past=None):
        own, cross = past if past is not None else (None, None)
        y, own = self.own(x, own)
        z, cross = self.cross(x + y, source, cross)
        return x + y + z, (own, cross)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x, source, pasts=None):
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, source, pasts[i] if pasts is not None else None)
            presents.append(present)
        return x, presents

    @torch.no_grad()
    def generate(self, source, steps):
        x, pasts, found = source[:, :2], None, []
        for _ in range(steps):
            y, pasts = self(x, source, pasts)
            pasts = _with_room(pasts, 1, more=steps, part=(None, 0))
            x = torch.tanh(y[:, -1:])
            found.append(x)
        return torch.cat(found, dim=1)
""",
        run=_GENERATE,
        unsafe=True,
        strategies=_STATIC,
        tolerance=_ROUNDING,
    ),
)
