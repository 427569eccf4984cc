"""What VarlenSplit reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)

INVALID: tuple[Example, ...] = (
    Example(
        title="one call for each chunk, in a comprehension",
        before="""\
class Blocks(nn.Module):
    def forward(self, q, k, v, bounds):
        lengths = bounds[1:] - bounds[:-1]
        splits = [
            torch.split(t, lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        # each image sees itself
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=None) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        after="""\
class Blocks(nn.Module):
    def forward(self, q, k, v, bounds):
        lengths = bounds[1:] - bounds[:-1]
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = q.shape[2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = (_chunk[:, None] == _chunk).to(q.device)
        splits = [
            torch.split(t, [t.shape[2]] if torch.compiler.is_compiling() else lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        # each image sees itself
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=_mask) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        run="""\
def make(): return Blocks()
def data(*bounds):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(1, 2, bounds[-1], 4, generator=g) for _ in "qkv"), torch.tensor(bounds))
calls = [data(0, 3, 7), data(0, 2, 2, 9), data(0, 5), data(0, 1, 2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="a callee that is handed in, and a loop that collects",
        before="""\
def attend(module, query, key, value, attention_mask, scaling, dropout=0.0, is_causal=None):
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2), weights

class Tower(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention, self.scaling = attention, 0.5
        self.qkv = nn.Linear(4, 12)

    def forward(self, x, bounds):
        q, k, v = self.qkv(x).reshape(-1, 3, 2, 2).permute(1, 2, 0, 3).unsqueeze(1).unbind(0)
        lengths = torch.diff(bounds)
        splits = [
            torch.split(t, lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        outs, weights = [], []
        for a, b, c in zip(*splits):
            out, weight = self.attention(
                self,
                a,
                b,
                c,
                attention_mask=None,
                scaling=self.scaling,
                is_causal=False,
            )
            outs.append(out)
            weights.append(weight)
        return torch.cat(outs, dim=1).flatten(2)
""",
        after="""\
def attend(module, query, key, value, attention_mask, scaling, dropout=0.0, is_causal=None):
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2), weights

class Tower(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention, self.scaling = attention, 0.5
        self.qkv = nn.Linear(4, 12)

    def forward(self, x, bounds):
        q, k, v = self.qkv(x).reshape(-1, 3, 2, 2).permute(1, 2, 0, 3).unsqueeze(1).unbind(0)
        lengths = torch.diff(bounds)
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = q.shape[2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = torch.where(_chunk[:, None] == _chunk, 0.0, float("-inf"))[None, None].to(q)
        splits = [
            torch.split(t, [t.shape[2]] if torch.compiler.is_compiling() else lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        outs, weights = [], []
        for a, b, c in zip(*splits):
            out, weight = self.attention(
                self,
                a,
                b,
                c,
                attention_mask=_mask,
                scaling=self.scaling,
                is_causal=False,
            )
            outs.append(out)
            weights.append(weight)
        return torch.cat(outs, dim=1).flatten(2)
""",
        run="""\
def make(): return Tower(attend)
def data(*bounds):
    return torch.linspace(-1, 1, 4 * bounds[-1]).view(-1, 4), torch.tensor(bounds, dtype=torch.int32)
calls = [data(0, 3, 7), data(0, 2, 2, 9), data(0, 5), data(0, 1, 2, 3)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="sizes with a name, three splits, and no place for a mask",
        before="""\
class Named(nn.Module):
    def forward(self, q, k, v, lengths: torch.Tensor):
        sizes = lengths.tolist()
        qs = q.split(sizes, dim=-2)
        ks = k.split(sizes, dim=-2)
        vs = v.split(sizes, dim=-2)
        outs = []
        for a, b, c in zip(qs, ks, vs):
            out = F.scaled_dot_product_attention(a, b, c, scale=0.5)
            outs.append(out)
        return torch.cat(outs, -2)
""",
        after="""\
class Named(nn.Module):
    def forward(self, q, k, v, lengths: torch.Tensor):
        sizes = [] if torch.compiler.is_compiling() else lengths.tolist()
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = q.shape[-2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = (_chunk[:, None] == _chunk).to(q.device)
        qs = q.split([q.shape[-2]] if torch.compiler.is_compiling() else sizes, dim=-2)
        ks = k.split([k.shape[-2]] if torch.compiler.is_compiling() else sizes, dim=-2)
        vs = v.split([v.shape[-2]] if torch.compiler.is_compiling() else sizes, dim=-2)
        outs = []
        for a, b, c in zip(qs, ks, vs):
            out = F.scaled_dot_product_attention(a, b, c, scale=0.5, attn_mask=_mask)
            outs.append(out)
        return torch.cat(outs, -2)
""",
        run="""\
def make(): return Named()
def data(*lengths):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(2, 2, sum(lengths), 4, generator=g) for _ in "qkv"), torch.tensor(lengths))
calls = [data(3, 4), data(2, 0, 7), data(5), data(1, 1, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="a line that has no room for more",
        before="""\
class Vision(nn.Module):
    def forward(self, query_states, key_states, value_states, bounds):
        lengths = bounds[1:] - bounds[:-1]
        splits = [
            torch.split(tensor, lengths.tolist(), dim=2) for tensor in (query_states, key_states, value_states)
        ]
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=None) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        after="""\
class Vision(nn.Module):
    def forward(self, query_states, key_states, value_states, bounds):
        lengths = bounds[1:] - bounds[:-1]
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = query_states.shape[2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = (_chunk[:, None] == _chunk).to(query_states.device)
        splits = [
            torch.split(
                tensor,
                [tensor.shape[2]] if torch.compiler.is_compiling() else lengths.tolist(),
                dim=2,
            )
            for tensor in (query_states, key_states, value_states)
        ]
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=_mask) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        run="""\
def make(): return Vision()
calls = [tuple(torch.randn(1, 2, 7, 4) for _ in range(3)) + (torch.tensor(b),) for b in ([0, 3, 7], [0, 7])]
""",
        unsafe=True,
    ),
    Example(
        title="a callee that the module calls not causal, inside of the concatenation",
        before="""\
def attend(module, query, key, value, attention_mask, **kwargs):
    masked = attention_mask is not None
    causal = module.is_causal and not masked
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, is_causal=causal, **kwargs)
    return out.transpose(1, 2), None

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.is_causal = False
        self.drop = 0.0

    def forward(self, q, k, v, bounds, **kwargs):
        lengths = (bounds[1:] - bounds[:-1]).to(torch.int64)
        splits = [
            torch.split(t, lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        return torch.cat(
            [
                attend(self, a, b, c, attention_mask=None, dropout_p=0.0 if not self.training else self.drop)[0]
                for a, b, c in zip(*splits)
            ],
            dim=1,
        )
""",
        after="""\
def attend(module, query, key, value, attention_mask, **kwargs):
    masked = attention_mask is not None
    causal = module.is_causal and not masked
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, is_causal=causal, **kwargs)
    return out.transpose(1, 2), None

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.is_causal = False
        self.drop = 0.0

    def forward(self, q, k, v, bounds, **kwargs):
        lengths = (bounds[1:] - bounds[:-1]).to(torch.int64)
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = q.shape[2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = torch.where(_chunk[:, None] == _chunk, 0.0, float("-inf"))[None, None].to(q)
        splits = [
            torch.split(t, [t.shape[2]] if torch.compiler.is_compiling() else lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        return torch.cat(
            [
                attend(self, a, b, c, attention_mask=_mask, dropout_p=0.0 if not self.training else self.drop)[0]
                for a, b, c in zip(*splits)
            ],
            dim=1,
        )
""",
        run="""\
def make(): return Inner()
def data(*bounds):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(1, 2, bounds[-1], 4, generator=g) for _ in "qkv"), torch.tensor(bounds))
calls = [data(0, 3, 7), data(0, 2, 2, 9), data(0, 5), data(0, 1, 2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="results that are taken apart later, the weights laid out in blocks",
        before="""\
def attend(module, query, key, value, attention_mask, is_causal):
    scores = query @ key.transpose(2, 3)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2), weights

class Laid(nn.Module):
    def forward(self, q, k, v, bounds):
        lengths = bounds[1:] - bounds[:-1]
        qs, ks, vs = (
            t.split(lengths.tolist(), dim=2)
            for t in (q, k, v)
        )
        outs = [attend(self, a, b, c, attention_mask=None, is_causal=False) for a, b, c in zip(qs, ks, vs)]
        weights = q.new_zeros(1, 2, q.shape[2], q.shape[2])
        start = 0
        for _, block in outs:
            end = start + block.shape[-1]
            weights[..., start:end, start:end] = block
            start = end
        return torch.cat([out[0] for out in outs], dim=1), weights
""",
        after="""\
def attend(module, query, key, value, attention_mask, is_causal):
    scores = query @ key.transpose(2, 3)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2), weights

class Laid(nn.Module):
    def forward(self, q, k, v, bounds):
        lengths = bounds[1:] - bounds[:-1]
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _total = q.shape[2]
            _fits = (lengths.sum() == _total) & (lengths >= 0).all() & torch.ones_like(lengths).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(lengths.cumsum(0), torch.arange(_total, device=lengths.device), right=True)
            _mask = torch.where(_chunk[:, None] == _chunk, 0.0, float("-inf"))[None, None].to(q)
        qs, ks, vs = (
            t.split([t.shape[2]] if torch.compiler.is_compiling() else lengths.tolist(), dim=2)
            for t in (q, k, v)
        )
        outs = [attend(self, a, b, c, attention_mask=_mask, is_causal=False) for a, b, c in zip(qs, ks, vs)]
        weights = q.new_zeros(1, 2, q.shape[2], q.shape[2])
        start = 0
        for _, block in outs:
            end = start + block.shape[-1]
            weights[..., start:end, start:end] = block
            start = end
        return torch.cat([out[0] for out in outs], dim=1), weights
""",
        run="""\
def make(): return Laid()
def data(*bounds):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(1, 2, bounds[-1], 4, generator=g) for _ in "qkv"), torch.tensor(bounds))
calls = [data(0, 3, 7), data(0, 2, 2, 9), data(0, 5), data(0, 1, 2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="a loop that appends what attention returns",
        before="""\
class Appends(nn.Module):
    def forward(self, q, k, v, lengths: torch.LongTensor):
        outs = []
        splits = tuple(zip(q.split(1), k.split(1)))
        qs, ks, vs = (
            torch.split(t, lengths[1:].tolist(), -2)
            for t in (q, k, v)
        )
        for a, b, c in zip(qs, ks, vs):
            outs.append(F.scaled_dot_product_attention(a, b, c))
        return torch.cat(outs, dim=-2), len(splits)
""",
        after="""\
class Appends(nn.Module):
    def forward(self, q, k, v, lengths: torch.LongTensor):
        outs = []
        splits = tuple(zip(q.split(1), k.split(1)))
        _mask = None
        if torch.compiler.is_compiling():  # one call for all
            _sizes = lengths[1:]
            _total = q.shape[-2]
            _fits = (_sizes.sum() == _total) & (_sizes >= 0).all() & torch.ones_like(_sizes).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(_sizes.cumsum(0), torch.arange(_total, device=_sizes.device), right=True)
            _mask = (_chunk[:, None] == _chunk).to(q.device)
        qs, ks, vs = (
            torch.split(t, [t.shape[-2]] if torch.compiler.is_compiling() else lengths[1:].tolist(), -2)
            for t in (q, k, v)
        )
        for a, b, c in zip(qs, ks, vs):
            outs.append(F.scaled_dot_product_attention(a, b, c, attn_mask=_mask))
        return torch.cat(outs, dim=-2), len(splits)
""",
        run="""\
def make(): return Appends()
def data(*lengths):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(2, 2, sum(lengths), 4, generator=g) for _ in "qkv"), torch.tensor((1, *lengths)))
calls = [data(3, 4), data(2, 0, 7), data(5)]
""",
        unsafe=True,
    ),
    Example(
        title="a mask that may be handed in",
        before="""\
class Given(nn.Module):
    def forward(self, q, k, v, bounds: torch.LongTensor, mask=None):
        sizes = (bounds[1:] - bounds[:-1]).tolist()
        qs = q.split(sizes, dim=2)
        ks = k.split(sizes, dim=2)
        vs = v.split(sizes, dim=2)
        outs = [
            F.scaled_dot_product_attention(a, b, c, attn_mask=mask)
            for a, b, c in zip(qs, ks, vs)
        ]
        return torch.cat(outs, dim=2)
""",
        after="""\
class Given(nn.Module):
    def forward(self, q, k, v, bounds: torch.LongTensor, mask=None):
        sizes = [] if torch.compiler.is_compiling() and mask is None else (bounds[1:] - bounds[:-1]).tolist()
        _mask = None
        if torch.compiler.is_compiling() and mask is None:  # one call for all
            _sizes = (bounds[1:] - bounds[:-1])
            _total = q.shape[2]
            _fits = (_sizes.sum() == _total) & (_sizes >= 0).all() & torch.ones_like(_sizes).any()
            torch._assert_async(_fits, "the lengths of the chunks must add up")
            _chunk = torch.searchsorted(_sizes.cumsum(0), torch.arange(_total, device=_sizes.device), right=True)
            _mask = (_chunk[:, None] == _chunk).to(q.device)
        qs = q.split([q.shape[2]] if torch.compiler.is_compiling() and mask is None else sizes, dim=2)
        ks = k.split([k.shape[2]] if torch.compiler.is_compiling() and mask is None else sizes, dim=2)
        vs = v.split([v.shape[2]] if torch.compiler.is_compiling() and mask is None else sizes, dim=2)
        outs = [
            F.scaled_dot_product_attention(a, b, c, attn_mask=_mask if mask is None else mask)
            for a, b, c in zip(qs, ks, vs)
        ]
        return torch.cat(outs, dim=2)
""",
        run="""\
def make(): return Given()
def data(*bounds):
    g = torch.Generator().manual_seed(3)
    return (*(torch.randn(1, 2, bounds[-1], 4, generator=g) for _ in "qkv"), torch.tensor(bounds))
calls = [data(0, 3, 7), data(0, 2, 2, 9), data(0, 5)]
""",
        unsafe=True,
    ),
    Example(
        title="causal within each chunk is reported",
        before="""\
class Causal(nn.Module):
    def forward(self, q, k, v, lengths):
        splits = [
            torch.split(t, lengths.tolist(), dim=2)
            for t in (q, k, v)
        ]
        outs = [F.scaled_dot_product_attention(a, b, c, is_causal=True) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        after=None,
        run="""\
def make(): return Causal()
calls = [(*(torch.randn(1, 2, 7, 4) for _ in "qkv"), torch.tensor([3, 4]))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a mask of its own for each chunk",
        source="""\
class Masked(nn.Module):
    def forward(self, q, k, v, lengths, mask):
        splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=mask) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        reported=True,
    ),
    NearMiss(
        title="a mask that is None by default, but made anew",
        source="""\
class Anew(nn.Module):
    def forward(self, q, k, v, lengths, mask=None):
        splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
        if q.shape[0] > 1:
            mask = q.new_zeros(1)
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=mask) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        reported=True,
    ),
    NearMiss(
        title="a scale that the chunk decides",
        source="""\
class Scaled(nn.Module):
    def forward(self, q, k, v, lengths):
        splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
        outs = [F.scaled_dot_product_attention(a, b, c, scale=1 / a.shape[2]) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        reported=True,
    ),
    NearMiss(
        title="the queries are split by other lengths than the keys",
        source="""\
class Crossed(nn.Module):
    def forward(self, q, k, v, lengths, others):
        qs = torch.split(q, lengths.tolist(), dim=2)
        ks, vs = (torch.split(t, others.tolist(), dim=2) for t in (k, v))
        outs = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(qs, ks, vs)]
        return torch.cat(outs, dim=2)
""",
    ),
    NearMiss(
        title="the lengths change between the splits",
        source="""\
class Changed(nn.Module):
    def forward(self, q, k, v, lengths):
        qs = torch.split(q, lengths.tolist(), dim=2)
        lengths = lengths.flip(0)
        ks, vs = (torch.split(t, lengths.tolist(), dim=2) for t in (k, v))
        outs = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(qs, ks, vs)]
        return torch.cat(outs, dim=2)
""",
    ),
    NearMiss(
        title="only eager code splits",
        source="""\
class Guarded(nn.Module):
    def forward(self, q, k, v, lengths):
        if torch.compiler.is_compiling():
            return F.scaled_dot_product_attention(q, k, v)
        else:
            splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
            outs = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(*splits)]
            return torch.cat(outs, dim=2)
""",
    ),
    NearMiss(
        title="lengths that are Python numbers",
        source="""\
class Listed(nn.Module):
    def forward(self, q, k, v, lengths: list[int]):
        splits = [torch.split(t, lengths, dim=2) for t in (q, k, v)]
        outs = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
    ),
)
