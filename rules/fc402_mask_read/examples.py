"""What MaskRead reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)

INVALID: tuple[Example, ...] = (
    Example(
        title="a loss that gets a name before its mean",
        before="""\
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, target, lengths):
        mask = torch.arange(3) < lengths[:, None]
        loss = F.mse_loss(self.lin(x), target, reduction="none")
        loss = loss[mask]
        return loss.mean()
""",
        after="""\
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, target, lengths):
        mask = torch.arange(3) < lengths[:, None]
        loss = F.mse_loss(self.lin(x), target, reduction="none")
        _count = None
        if torch.compiler.is_compiling():
            _kept = mask[(..., *[None] * (loss.ndim - mask.ndim))].expand_as(loss)
            _count = _kept.sum()
            loss = torch.where(_kept, loss, 0)
        else:
            loss = loss[mask]
        return loss.mean() if _count is None else loss.sum() / _count
""",
        run="""\
x = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
def make(): return Named()
calls = [(x, x + 1, torch.tensor([1, 2]))]
train = True
""",
        unsafe=True,
        tolerance=1e-6,
    ),
    Example(
        title="a mask that fits by broadcasting",
        before="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, weights, lengths):
        masks = (torch.arange(3) < lengths[:, None]).unsqueeze(-1)
        losses = self.lin(x).abs()
        return losses.mul(weights).masked_select(masks).sum(), torch.mean(losses.masked_select(masks))
""",
        after="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, weights, lengths):
        masks = (torch.arange(3) < lengths[:, None]).unsqueeze(-1)
        losses = self.lin(x).abs()
        if torch.compiler.is_compiling():
            _kept = masks & torch.ones_like(losses, dtype=torch.bool)
            return (torch.where(masks, losses.mul(weights), 0).sum(), torch.where(_kept, losses, 0).sum() / _kept.sum())
        else:
            return losses.mul(weights).masked_select(masks).sum(), torch.mean(losses.masked_select(masks))
""",
        run="""\
x = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
def make(): return Weighted()
calls = [(x, x + 1, torch.tensor([1, 2]))]
train = True
""",
        unsafe=True,
        tolerance=1e-6,
    ),
    Example(
        title="what is computed where it is masked",
        before="""\
class Direct(nn.Module):
    def forward(self, x, target, lengths):
        mask = torch.arange(3) < lengths[:, None]
        return F.smooth_l1_loss(x, target, reduction="none")[mask].mean()
""",
        after="""\
class Direct(nn.Module):
    def forward(self, x, target, lengths):
        mask = torch.arange(3) < lengths[:, None]
        if torch.compiler.is_compiling():
            _values = F.smooth_l1_loss(x, target, reduction="none")
            _kept = mask[(..., *[None] * (_values.ndim - mask.ndim))].expand_as(_values)
            return torch.where(_kept, _values, 0).sum() / _kept.sum()
        else:
            return F.smooth_l1_loss(x, target, reduction="none")[mask].mean()
""",
        run="""\
x = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
def make(): return Direct()
calls = [(x, x + 1, torch.tensor([1, 2]))]
""",
        unsafe=True,
        tolerance=1e-6,
    ),
    Example(
        title="elements are counted to check them; the mask has the shape of what it reads",
        before="""\
def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check_with(ValueError, ok, lambda: message)

class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids: torch.Tensor | None, features: torch.Tensor):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(h[spread].numel() == features.numel(), "no fit")  # as many as there are places
        return h.masked_scatter(spread, features)
""",
        after="""\
def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check_with(ValueError, ok, lambda: message)

class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids: torch.Tensor | None, features: torch.Tensor):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(spread.sum() == features.numel(), "no fit")  # as many as there are places
        return h.masked_scatter(spread, features)
""",
        run="""\
def make(): return Merge()
calls = [(torch.tensor([[7, 1, 7]]), torch.ones(n, 4)) for n in (2, 3)]
""",
    ),
    Example(
        title="rows are counted for a function that only checks; a name holds the number",
        before="""\
def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        count = h[ids == 7].shape[0]
        require(count == rows.shape[0], "rows must fit the places")
        require(h[ids == 7].numel() == rows.numel(), message="numbers must fit the places")
        return h * 2
""",
        after="""\
def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        count = (ids == 7).sum()
        require(count == rows.shape[0], "rows must fit the places")
        require(((ids == 7).sum() * h.shape[-1]) == rows.numel(), message="numbers must fit the places")
        return h * 2
""",
        run="""\
def make(): return Rows()
calls = [(torch.tensor([[7, 1, 7]]), torch.ones(2, 4)), (torch.tensor([[1, 1, 7]]), torch.ones(1, 4))]
""",
    ),
    Example(
        title="the mean of a loss over the places that count",
        before="""\
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, goal):
        loss = self.lin(x).square()
        kept = loss > 0.01
        return loss[kept].mean()
""",
        after="""\
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, goal):
        loss = self.lin(x).square()
        kept = loss > 0.01
        if torch.compiler.is_compiling():
            return torch.where(kept, loss, 0).sum() / kept.sum()
        else:
            return loss[kept].mean()
""",
        run="""\
def make(): return Loss()
calls = [(torch.linspace(-1, 1, 8).view(2, 4), torch.ones(1))]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="the sum of rows",
        before="""\
class Total(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids)
        return h[ids > 3].sum()
""",
        after="""\
class Total(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids)
        if torch.compiler.is_compiling():
            _kept = ids > 3
            _kept = _kept[..., None]
            return torch.where(_kept, h, 0).sum()
        else:
            return h[ids > 3].sum()
""",
        run="""\
def make(): return Total()
calls = [(torch.tensor([[7, 1, 7]]),), (torch.tensor([[1, 1, 2]]),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="changed element by element and written back",
        before="""\
class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        other = h * 3
        low = ids < 7
        h[low] = (2 * other[low] - h[low]) / 4  # in place
        return h, other
""",
        after="""\
class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        other = h * 3
        low = ids < 7
        h.copy_(torch.where(low.unsqueeze(-1), (2 * other - h) / 4, h))  # in place
        return h, other
""",
        run="""\
def make(): return Flip()
calls = [(torch.tensor(v),) for v in ([[7, 1, 7]], [[1, 1, 2]])]
train = True
""",
    ),
    Example(
        title="bounded and written back, without gradients",
        before="""\
class Bound(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor):
        h = x * 1
        low = h < 0
        h[low] = -h[low].abs().clamp(max=2)
        return h
""",
        after="""\
class Bound(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor):
        h = x * 1
        low = h < 0
        h.copy_(torch.where(low, -h.abs().clamp(max=2), h))
        return h
""",
        run="""\
def make(): return Bound()
calls = [(torch.linspace(-1, 1, 8).view(2, 4) * k,) for k in (1.0, 9.0)]
""",
    ),
    Example(
        title="a function of rows, written back at the same places",
        before="""\
def bent(x, weights, scale):
    share = F.softmax(weights, dim=-1)
    bins = share.cumsum(-1)
    return torch.sqrt(x) * bins[..., 0] * scale, torch.log(x)

class Spline(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.wide = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h, weights = self.lin(x), self.wide(x.unsqueeze(-1).expand(-1, -1, 4))
        inside = h > 0
        out = torch.zeros_like(h)
        size = torch.zeros_like(h)
        out[inside], size[inside] = bent(h[inside], weights=weights[inside, :], scale=2.0)
        return out + size
""",
        after="""\
def bent(x, weights, scale):
    share = F.softmax(weights, dim=-1)
    bins = share.cumsum(-1)
    return torch.sqrt(x) * bins[..., 0] * scale, torch.log(x)

class Spline(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.wide = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h, weights = self.lin(x), self.wide(x.unsqueeze(-1).expand(-1, -1, 4))
        inside = h > 0
        out = torch.zeros_like(h)
        size = torch.zeros_like(h)
        _places = inside.flatten()
        _rows = torch.where(_places, torch.arange(_places.numel(), device=_places.device), _places.int().argmax())
        _values, _values_2 = bent(
            h.flatten(0, inside.ndim - 1)[_rows],
            weights=weights.flatten(0, inside.ndim - 1)[_rows],
            scale=2.0,
        )
        out.copy_(torch.where(inside, _values.reshape(out.shape), out))
        size.copy_(torch.where(inside, _values_2.reshape(size.shape), size))
        return out + size
""",
        run="""\
def make(): return Spline()
calls = [(torch.linspace(-k, k, 8).view(2, 4),) for k in (1.0, 9.0)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="packed rows are reported",
        before="""\
class Pack(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        return self.lin(h[h.sum(-1) > 0])
""",
        after=None,
        run="""\
def make(): return Pack()
calls = [(torch.linspace(-1, 1, 8).view(2, 4),)]
""",
    ),
    Example(
        title="an expert for some rows, another one for the others",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.words = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 5))
        self.picture = nn.Linear(4, 5)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        out = torch.empty(*ids.shape, 5)
        # one for words, one for pictures
        out[seen] = self.picture(h[seen])
        out[~seen] = self.words(h[~seen])
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.words = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 5))
        self.picture = nn.Linear(4, 5)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        out = torch.empty(*ids.shape, 5)
        # one for words, one for pictures
        if torch.compiler.is_compiling():
            _rows = self.picture(h.flatten(0, seen.dim() - 1).clone())
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            out.copy_(torch.where(_picked, _rows, out.flatten(0, seen.dim() - 1)).reshape(out.shape))
            _rows = self.words(h.flatten(0, seen.dim() - 1).clone())
            _picked = (~seen).reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            out.copy_(torch.where(_picked, _rows, out.flatten(0, seen.dim() - 1)).reshape(out.shape))
        else:
            out[seen] = self.picture(h[seen])
            out[~seen] = self.words(h[~seen])
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="experts with a weight for each row; what is added has all dimensions",
        before="""\
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: torch.Tensor):
        rows = x.reshape(-1, 4)
        weights = self.router(rows).softmax(-1)
        chosen = weights.topk(2, dim=-1).indices.view(*x.shape[:-1], 2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            picked = (chosen == i).any(dim=-1)
            flat = picked.view(-1)
            own = rows[flat]
            share = weights[flat, i].unsqueeze(1)
            out[picked] += expert(own) * share
        return out
""",
        after="""\
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: torch.Tensor):
        rows = x.reshape(-1, 4)
        weights = self.router(rows).softmax(-1)
        chosen = weights.topk(2, dim=-1).indices.view(*x.shape[:-1], 2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            picked = (chosen == i).any(dim=-1)
            flat = picked.view(-1)
            if torch.compiler.is_compiling():
                own = rows.flatten(0, flat.dim() - 1).clone()
                share = weights.flatten(0, flat.dim() - 1)[:, i].clone().unsqueeze(1)
                _rows = out.flatten(0, picked.dim() - 1) + (expert(own) * share)
                _picked = picked.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
                out.copy_(torch.where(_picked, _rows, out.flatten(0, picked.dim() - 1)).reshape(out.shape))
            else:
                own = rows[flat]
                share = weights[flat, i].unsqueeze(1)
                out[picked] += expert(own) * share
        return out
""",
        run="""\
def make(): return Routed()
calls = [(torch.linspace(-1, 1, 4 * n * m).view(n, m, 4),) for n, m in ((2, 3), (1, 5), (2, 1))]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="norms, scattered",
        before="""\
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.other = nn.LayerNorm(4), nn.LayerNorm(4, bias=False)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        h = h.masked_scatter(seen.unsqueeze(-1), self.norm(h[seen]))
        h = h.masked_scatter(~seen[..., None], self.other(h[~seen]).to(h.dtype))
        return h
""",
        after="""\
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.other = nn.LayerNorm(4), nn.LayerNorm(4, bias=False)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        if torch.compiler.is_compiling():
            _rows = self.norm(h.flatten(0, seen.dim() - 1).clone())
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h = torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape)
            _rows = self.other(h.flatten(0, seen.dim() - 1).clone()).to(h.dtype)
            _picked = (~seen).reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h = torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape)
        else:
            h = h.masked_scatter(seen.unsqueeze(-1), self.norm(h[seen]))
            h = h.masked_scatter(~seen[..., None], self.other(h[~seen]).to(h.dtype))
        return h
""",
        run="""\
def make(): return Norms()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="rows with names, which are added",
        before="""\
class Added(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(6, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        old = h[seen]
        gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
        h[seen] = self.down(F.silu(gate) * value)
        h[seen] += old * 2
        return h
""",
        after="""\
class Added(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(6, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        if torch.compiler.is_compiling():
            old = h.flatten(0, seen.dim() - 1).clone()
            gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
            _rows = self.down(F.silu(gate) * value)
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape))
            _rows = h.flatten(0, seen.dim() - 1) + (old * 2)
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape))
        else:
            old = h[seen]
            gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
            h[seen] = self.down(F.silu(gate) * value)
            h[seen] += old * 2
        return h
""",
        run="""\
def make(): return Added()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="what is added has a row for each that is selected",
        before="""\
class Joined(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, features):
        h = self.embed(ids) * 1
        seen = ids == 3
        h[seen] = h[seen] + features
        return h
""",
        after=None,
        run="""\
def make(): return Joined()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]), torch.ones(2, 4)), (torch.tensor([[3, 3]]), torch.ones(2, 4))]
""",
    ),
    Example(
        title="what is read is overwritten, and needed for the gradient",
        before="""\
class Saved(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x) * 1
        low = h > 0
        h[low] = h[low].abs()
        return h
""",
        after="""\
class Saved(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x) * 1
        low = h > 0
        if torch.compiler.is_compiling():
            _rows = h.flatten(0, low.dim() - 1).clone().abs()
            _picked = low.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, low.dim() - 1)).reshape(h.shape))
        else:
            h[low] = h[low].abs()
        return h
""",
        run="""\
def make(): return Saved()
calls = [(torch.linspace(-1, 1, 6).view(2, 3),)]
train = True
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a mask of each turn of a comprehension",
        source="""\
class Sums(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor):
        sums = {i: x[ids == i].sum() for i in range(3)}
        means = sum(x[ids == i].mean() for i in range(3))
        return sums[0] + means
""",
        reported=True,
    ),
    NearMiss(
        title="a mask that may be missing, asked for in the same line",
        source="""\
class Mean(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor | None = None, most: int = 2):
        y = x[ids > 0].mean() if ids is not None else x.mean()
        z = ids is not None and x[ids > 1].mean()
        return y + z
""",
        reported=True,
    ),
    NearMiss(
        title="the name is read twice, or is something else on another way",
        source="""\
class Twice(nn.Module):
    def forward(self, x, y, lengths):
        mask = torch.arange(3) < lengths[:, None]
        loss = (x - y)[mask]
        other = x * y
        if self.training:
            other = other[mask]
        return loss.mean() + loss.max() + other.mean()
""",
        reported=True,
    ),
    NearMiss(
        title="the mask is drawn",
        source="""\
class Drawn(nn.Module):
    def forward(self, x, y):
        loss = (x - y).square()
        return loss.masked_select(torch.rand(4) > 0.5).mean()
""",
        reported=True,
    ),
    NearMiss(
        title="a mean along one dimension",
        source="""\
class Along(nn.Module):
    def forward(self, x, lengths):
        mask = torch.arange(3) < lengths[:, None]
        rows = x[mask]
        return rows.mean(0)
""",
        reported=True,
    ),
    NearMiss(
        title="an index, not a mask",
        source="""\
class Ordered(nn.Module):
    def forward(self, h):
        order = h.sum(-1).argsort()
        return h[order].mean(), len(h[order])
""",
    ),
    NearMiss(
        title="a number that is a size",
        source="""\
class Sized(nn.Module):
    def forward(self, h):
        y = h * 2
        return torch.zeros(y[y > 0].numel())
""",
        reported=True,
    ),
    NearMiss(
        title="a mask that may be None, which is an index as well",
        source="""\
class Optional(nn.Module):
    def forward(self, h, m: torch.BoolTensor | None = None):
        y = h * 2
        if y[m].shape[0] == 0:
            raise ValueError("nothing is set")
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="a mask of another shape is an error, and stays one",
        source="""\
class Shapes(nn.Module):
    def forward(self, h, m: torch.BoolTensor):
        y = h * 2
        if y[m].shape[0] == 0:
            raise ValueError("nothing is set")
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="a function that takes bools only",
        source="""\
class Strict(nn.Module):
    def forward(self, h):
        y = h * 2
        torch._check(y[y > 0].numel() > 1)
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="a branch that would break the graph in its turn",
        source="""\
class Branch(nn.Module):
    def forward(self, h):
        y = h * 2
        if y[y > 0].numel() == 0:
            return y
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="compared with what may be a float",
        source="""\
class Share(nn.Module):
    def forward(self, h, part):
        y = h * 2
        if y[y > 0].numel() > part:
            raise ValueError("too many")
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="the mean of integers is an error",
        source="""\
class Whole(nn.Module):
    def forward(self, h):
        y = torch.argsort(h)
        return y[y > 0].mean()
""",
        reported=True,
    ),
    NearMiss(
        title="a function that looks at its neighbours",
        source="""\
class Running(nn.Module):
    def forward(self, h):
        y = h * 2
        low = y > 0
        y[low] = y[low].cumsum(0)
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="one of a pair",
        source="""\
class Pair(nn.Module):
    def forward(self, x, pair, level):
        return x * pair[level > 3]
""",
    ),
    NearMiss(
        title="a list",
        source="""\
class Listed(nn.Module):
    def forward(self, x):
        found = [x, x * 2]
        return found[x.dim() > 1]
""",
    ),
    NearMiss(
        title="rows that are needed packed as well",
        source="""\
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        h[seen] = rows
        return h, rows
""",
        reported=True,
    ),
    NearMiss(
        title="rows of one mask for another one",
        source="""\
class Swapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        h[seen] = self.lin(h[~seen])
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="the mask changes before the rows are written",
        source="""\
class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        seen = ids.flip(0) == 3
        h[seen] = rows
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="the mask is written through itself",
        source="""\
class Itself(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        seen[0] = True
        h[seen] = rows
        return h
""",
        reported=True,
    ),
)
