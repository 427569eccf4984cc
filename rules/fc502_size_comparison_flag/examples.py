"""What SizeComparisonFlag reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = """
def make():
    return Net()

def qk(n, m=None):
    q = torch.arange(16.0 * n).view(2, 2, n, 4) / 100
    k = torch.arange(16.0 * (m or n)).view(2, 2, m or n, 4).sin()
    return q, k

calls = [qk(n) for n in (3, 5, 6, 7)] + [qk(1, n) for n in (4, 5, 6)]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="in the call",
        before="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(
            q,
            k,
            k,
            is_causal=q.shape[2] == k.shape[2],  # not while decoding
        )
""",
        after="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(
            q,
            k,
            k,
            is_causal=True if q.shape[2] == k.shape[2] else False,  # not while decoding
        )
""",
        run=_RUN,
    ),
    Example(
        title="named first",
        before="""class Net(nn.Module):
    def forward(self, q, k):
        new, total = q.size(2), k.size(2)
        causal = (new == total and new > 1)  # not while decoding
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        after="""class Net(nn.Module):
    def forward(self, q, k):
        new, total = q.size(2), k.size(2)
        causal = (True if new == total and new > 1 else False)  # not while decoding
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        run=_RUN,
    ),
    Example(
        title="bool() does not help",
        before="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, None, 0.0, bool(q.shape[2] > 1))
""",
        after="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, None, 0.0, True if q.shape[2] > 1 else False)
""",
        run=_RUN,
    ),
    Example(
        title="together with a flag of any kind",
        before="""class Net(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.causal = causal

    def forward(self, q, k):
        flag = self.switch(q)
        return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] == k.shape[2] and flag)

    def switch(self, q):
        return self.causal
""",
        after="""class Net(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.causal = causal

    def forward(self, q, k):
        flag = self.switch(q)
        return F.scaled_dot_product_attention(
            q,
            k,
            k,
            is_causal=(True if q.shape[2] == k.shape[2] else False) and flag,
        )

    def switch(self, q):
        return self.causal
""",
        run=_RUN,
    ),
    Example(
        title="imported, or None where there is no such function",
        before="""try:
    from torch.nn.functional import scaled_dot_product_attention

    AVAILABLE = True
except (ImportError, RuntimeError, OSError):
    scaled_dot_product_attention = None
    AVAILABLE = False


class Net(nn.Module):
    def forward(self, q, k, mask=None):
        n = q.shape[2]
        if not AVAILABLE or scaled_dot_product_attention is None:
            return q
        return scaled_dot_product_attention(q, k, k, is_causal=mask is None and n > 1)
""",
        after="""try:
    from torch.nn.functional import scaled_dot_product_attention

    AVAILABLE = True
except (ImportError, RuntimeError, OSError):
    scaled_dot_product_attention = None
    AVAILABLE = False


class Net(nn.Module):
    def forward(self, q, k, mask=None):
        n = q.shape[2]
        if not AVAILABLE or scaled_dot_product_attention is None:
            return q
        return scaled_dot_product_attention(q, k, k, is_causal=True if mask is None and n > 1 else False)
""",
        run=_RUN,
    ),
    Example(
        title="how far the text is, counted outside",
        before="""from torch.nn.functional import scaled_dot_product_attention as attend


class Net(nn.Module):
    def forward(self, q, k, offset=None, mask=None):
        if offset is None:
            offset = k.shape[2] - q.shape[2]
        return self.attention(q, k, offset, mask)

    def attention(self, q, k, offset, mask):
        return attend(q, k, k, mask, is_causal=(mask is None and offset == 0))
""",
        after="""from torch.nn.functional import scaled_dot_product_attention as attend


class Net(nn.Module):
    def forward(self, q, k, offset=None, mask=None):
        if offset is None:
            offset = k.shape[2] - q.shape[2]
        return self.attention(q, k, offset, mask)

    def attention(self, q, k, offset, mask):
        return attend(q, k, k, mask, is_causal=(True if mask is None and offset == 0 else False))
""",
        run=_RUN,
    ),
    Example(
        title="passed on by a method",
        before="""class Net(nn.Module):
    def _attend(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def forward(self, q, k):
        first = self._attend(q, k, q.shape[2] == k.shape[2])  # nothing cached yet
        return self._attend(first, k, causal=k.shape[2] != q.shape[2] or first.shape[2] > 1)
""",
        after="""class Net(nn.Module):
    def _attend(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def forward(self, q, k):
        first = self._attend(q, k, True if q.shape[2] == k.shape[2] else False)  # nothing cached yet
        return self._attend(first, k, causal=True if k.shape[2] != q.shape[2] or first.shape[2] > 1 else False)
""",
        run=_RUN,
    ),
    Example(
        title="one of several assignments, of a number that is not known",
        before="""class Net(nn.Module):
    def forward(self, q, k, cache=None):
        if cache is None:
            causal = True
        else:
            k = torch.cat([cache.keys, k], dim=2)
            causal = cache.length == 0
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        after="""class Net(nn.Module):
    def forward(self, q, k, cache=None):
        if cache is None:
            causal = True
        else:
            k = torch.cat([cache.keys, k], dim=2)
            causal = True if cache.length == 0 else False
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        run="""
class Cache:
    def __init__(self, length):
        self.length = length
        self.keys = torch.ones(2, 2, length, 4)

def make():
    return Net()

def qk(n):
    return (torch.arange(16.0 * n).view(2, 2, n, 4) / 100,) * 2

calls = [(*qk(3), Cache(n)) for n in (0, 4, 5, 6)]
""",
        unsafe=True,
    ),
    Example(
        title="worked out by a function of its own",
        before="""class Net(nn.Module):
    def forward(self, x):
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.small(x))
        return F.dropout(x, 0.0, small := x.shape[2] == x.shape[3]) + small

    def small(self, x):
        if x.ndim != 4:
            return False
        return x.shape[2] <= 8 or x.shape[3] <= 8
""",
        after="""class Net(nn.Module):
    def forward(self, x):
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.small(x))
        return F.dropout(x, 0.0, small := (True if x.shape[2] == x.shape[3] else False)) + small

    def small(self, x):
        if x.ndim != 4:
            return False
        return True if x.shape[2] <= 8 or x.shape[3] <= 8 else False
""",
        run="""
def make():
    return Net()

calls = [(torch.arange(2.0 * n * n).view(1, 2, n, n),) for n in (3, 5, 6, 7)]
""",
    ),
    Example(
        title="handed on to other modules of the file",
        before="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, q, k, causal=False):
        return self.attend(q, k, causal)

    def attend(self, q, k, causal):
        return self.out(F.scaled_dot_product_attention(q, k, k, is_causal=causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, q, k):
        q = self.first.attend(q, k, q.shape[2] == k.shape[2])
        causal = k.shape[2] == q.shape[2] or k.shape[2] < 2
        for i, layer in enumerate(self.layers):
            q = layer(q, k, causal=causal)
        return q
""",
        after="""class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, q, k, causal=False):
        return self.attend(q, k, causal)

    def attend(self, q, k, causal):
        return self.out(F.scaled_dot_product_attention(q, k, k, is_causal=causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, q, k):
        q = self.first.attend(q, k, True if q.shape[2] == k.shape[2] else False)
        causal = True if k.shape[2] == q.shape[2] or k.shape[2] < 2 else False
        for i, layer in enumerate(self.layers):
            q = layer(q, k, causal=causal)
        return q
""",
        run=_RUN,
    ),
    Example(
        title="a number that is not known, where another branch has the flag too",
        before="""class Net(nn.Module):
    def forward(self, q, k, offset):
        causal = offset == 0
        if self.training:
            return causal
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        after="""class Net(nn.Module):
    def forward(self, q, k, offset):
        causal = True if offset == 0 else False
        if self.training:
            return causal
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
        run="""
def make():
    return Net().eval()

def qk(n):
    return (torch.arange(16.0 * n).view(2, 2, n, 4) / 100,) * 2

calls = [(*qk(3), n) for n in (0, 4, 5, 6)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="tensors that are compared",
        source="""class Net(nn.Module):
    def forward(self, q, k, lengths):
        if self.training:
            return self._attend(q, k, lengths.sum() == 0)
        return F.scaled_dot_product_attention(q, k, k, is_causal=lengths.amax() == k.shape[2])

    def _attend(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal) if isinstance(causal, bool) else q * causal
""",
    ),
    NearMiss(
        title="a conditional expression already",
        source="""class Net(nn.Module):
    def forward(self, q, k):
        causal = True if q.shape[2] == k.shape[2] else False
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
""",
    ),
    NearMiss(
        title="a test that is no comparison of sizes",
        source="""class Net(nn.Module):
    def __init__(self, kind, causal):
        super().__init__()
        self.kind = kind
        self.causal = causal

    def forward(self, q, k, mask=None):
        y = F.scaled_dot_product_attention(q, k, k, mask, is_causal=mask is None and self.causal)
        z = F.scaled_dot_product_attention(q, k, k, is_causal=self.kind == "decoder")
        return F.scaled_dot_product_attention(y, z, z, is_causal=q.ndim == 4 and q.dtype == k.dtype)
""",
    ),
    NearMiss(
        title="ints that a module holds are static",
        source="""class Net(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self.window = window

    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=self.window == 0)
""",
    ),
    NearMiss(
        title="sizes first, the flag last",
        source="""class Net(nn.Module):
    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, mask=None):
        causal = q.shape[2] > 1 and mask is None and self.causal  # sizes of 0 and 1 are static: the last one decides
        return F.scaled_dot_product_attention(q, k, k, mask, is_causal=causal)
""",
    ),
    NearMiss(
        title="not makes a bool of it",
        source="""class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=not (q.shape[2] == k.shape[2]))
""",
    ),
    NearMiss(
        title="a comparison that only Python tests",
        source="""class Net(nn.Module):
    def forward(self, q, k):
        causal = q.shape[2] == k.shape[2]
        if causal:
            k = k * 2
        return F.scaled_dot_product_attention(q, k, k, is_causal=False) * 2
""",
    ),
    NearMiss(
        title="places in a loop are static",
        source="""class Net(nn.Module):
    def forward(self, q, k):
        for i in range(3):
            q = F.scaled_dot_product_attention(q, k, k, is_causal=i == 0)
        return q
""",
    ),
    NearMiss(
        title="code that is never compiled",
        source="""def prepare(q, k):
    return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] == k.shape[2])
""",
    ),
    NearMiss(
        title="another module that makes something else of it",
        source="""class Attention(nn.Module):
    def forward(self, q, k, causal=False):
        return self.attend(q, k, not causal)

    def attend(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)

    def masked(self, q, k, causal):
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril() if causal else None
        return F.scaled_dot_product_attention(q, k, k, mask)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Attention()

    def forward(self, q, k):
        return self.own(self.own.masked(q, k, q.shape[2] == k.shape[2]), k, causal=q.shape[2] != k.shape[2])
""",
    ),
    NearMiss(
        title="a tensor that another module is given",
        source="""class Attention(nn.Module):
    def forward(self, q, k, causal=False):
        return F.scaled_dot_product_attention(q, k, k, is_causal=bool(causal))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Attention()

    def forward(self, q, k, lengths):
        return self.own(q, k, causal=lengths.amax() == k.shape[2])
""",
    ),
    NearMiss(
        title="an argument of a function that is not known",
        source="""from elsewhere import attention


class Net(nn.Module):
    def forward(self, q, k):
        return attention(q, k, k, is_causal=q.shape[2] == k.shape[2])
""",
    ),
)
