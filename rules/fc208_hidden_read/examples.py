"""What HiddenRead reports, and what looks like it and is none."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="how likely it is, kept in a buffer object",
        before="""\
class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(layers)])
        self.shares = nn.Buffer(torch.ones(layers))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0 and (self.training or self.shares[i] > 0):
                x = layer(x)
        return x
""",
        after=None,
        run="""\
def make(): return Net(2).eval()
calls = [(torch.randn(2, 3),), (torch.randn(4, 3),)]
""",
    ),
    Example(
        title="dimensions in an order that a tensor says",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        order = torch.cat((torch.tensor([1, 0]), torch.arange(2, x.dim())))
        return x.permute(*order) * 2
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 4),), (torch.randn(5, 3, 4),)]
""",
    ),
    Example(
        title="what a comprehension keeps, and what a class says that its objects have",
        before="""\
class Plane(nn.Module):
    z: torch.Tensor

    def __init__(self, z):
        super().__init__()
        self.register_buffer("z", torch.tensor(z))

class Lens(Plane):
    def forward(self, x):
        return x * self.z

def reference(z):
    return Lens(z)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lenses = nn.ModuleList([Lens(1.0), Lens(2.0)])
        self.first = Lens(0.5)

    def forward(self, x, last: Lens):
        kept = [lens for lens in self.lenses if lens.z > self.first.z]
        if last.z > 3:
            kept = kept[:1]
        for lens in kept:
            x = lens(x)
        if reference(0.25).z < last.z:
            x = x + 1
        return x
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3), Lens(2.5)), (torch.randn(4, 3), Lens(3.5))]
""",
    ),
    Example(
        title="the dimension of a sum",
        before="""\
class Net(nn.Module):
    def forward(self, x, last: torch.Tensor):
        return x.sum(dim=last - 1) + torch.cat([x, x], dim=last * 0).mean()
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(3, 3), torch.tensor(1)), (torch.randn(4, 4), torch.tensor(2))]
""",
    ),
    Example(
        title="counts of numbers that are all below the smallest length",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.gate = nn.Linear(3, 4)

    def forward(self, x):
        chosen = self.gate(x).topk(2, -1).indices
        load = torch.bincount(chosen.flatten(), minlength=self.count)
        return x * load.max()
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.gate = nn.Linear(3, 4)

    def forward(self, x):
        chosen = self.gate(x).topk(2, -1).indices
        _counted = chosen.flatten().long()
        load = _counted.new_zeros(self.count).scatter_add(0, _counted, torch.ones_like(_counted))
        return x * load.max()
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(5, 3),), (torch.randn(2, 3),)]
""",
        unsafe=True,
    ),
    Example(
        title="counts that a tensor is asked for",
        before="""\
class Net(nn.Module):
    def forward(self, x, ids: torch.Tensor):
        ids = ids.to(torch.int64)
        counts = ids.bincount(minlength=6)
        return x + counts
""",
        after="""\
class Net(nn.Module):
    def forward(self, x, ids: torch.Tensor):
        ids = ids.to(torch.int64)
        counts = ids.new_zeros(6).scatter_add(0, ids, torch.ones_like(ids))
        return x + counts
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(6), torch.tensor([0, 5, 5], dtype=torch.int32)), (torch.randn(6), torch.tensor([1, 5, 3]))]
""",
        unsafe=True,
    ),
    Example(
        title="parts as long as a tensor says, made a tuple first",
        before="""\
class Net(nn.Module):
    def forward(self, x, ids: torch.Tensor):
        counts = torch.bincount(ids * 1, minlength=2)[:2]
        counts = tuple(counts)
        first, last = torch.split(x * 2, counts)
        return first.sum() + last.mean()
""",
        after=None,
        run="""\
def make(): return Net()
ids = torch.tensor([0, 1, 1, 0])
calls = [(torch.randn(4, 3), ids), (torch.randn(4, 3), ids * 0 + torch.tensor([0, 1, 1, 1]))]
""",
    ),
    Example(
        title="a cache is written at a position that is a tensor",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, cache, position: torch.Tensor):
        start = position[0]
        end = start + x.shape[1]
        cache[:, start:end] = self.layer(x)
        return cache.sum(1)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n, 3), torch.zeros(2, 9, 3), torch.tensor([k, k])) for n, k in ((2, 0), (2, 3))]
""",
    ),
    Example(
        title="a longest length, as a size",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, lengths: torch.Tensor):
        longest = lengths.max()
        steps = torch.arange(longest)
        return self.layer(x).sum() * (steps[None] < lengths[:, None])
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3), torch.tensor([2, 4])), (torch.randn(2, 3), torch.tensor([3, 1]))]
""",
    ),
    Example(
        title="rows that a tensor counts, in a loop",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, counts: torch.Tensor):
        y = self.layer(x)
        for _ in range(counts.sum()):
            y = y * 2
        return y
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3), torch.tensor([2, 1])), (torch.randn(2, 3), torch.tensor([1, 1]))]
""",
    ),
    Example(
        title="one row, by the place of a maximum",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        best = y.sum(-1).argmax()
        return y[best] * 2
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(4, 3),), (torch.randn(5, 3),)]
""",
    ),
    Example(
        title="all of Python, over a comparison",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        small = all(y.abs().amax(-1) < 100)
        return y, small
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(4, 3),), (torch.randn(5, 3),)]
""",
    ),
    Example(
        title="a product of sizes by NumPy",
        before="""\
import numpy as np

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        return y.flatten() + torch.zeros(np.prod(x.shape))
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(4, 3),), (torch.randn(5, 3),)]
""",
    ),
    Example(
        title="a root, by math",
        before="""\
import math

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, lengths: torch.Tensor):
        y = self.layer(x)
        return y / math.sqrt(lengths.max())
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(4, 3), torch.tensor([4, 2])), (torch.randn(5, 3), torch.tensor([9, 2]))]
""",
    ),
    Example(
        title="rows of each item, by the mask beside it",
        before="""\
class Net(nn.Module):
    def forward(self, x, mask):
        kept = []
        for row, row_mask in zip(x, mask):
            kept.append(row[row_mask])
        return torch.cat(kept) * 2
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3), torch.tensor([[True, False, True], [False, True, True]]))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="sums of weights, and as many counts as the largest number",
        source="""\
class Net(nn.Module):
    def forward(self, ids: torch.Tensor, weights: torch.Tensor):
        sums = ids.bincount(weights=weights)
        return sums.sum() + torch.bincount(ids, minlength=int(ids.max()) + 1).sum()
""",
        reported=True,
    ),
    NearMiss(
        title="a comprehension that keeps what is there, or by its size",
        source="""\
class Net(nn.Module):
    def forward(self, x: torch.Tensor, parts: list[torch.Tensor], least: int):
        kept = [p for p in parts if p is not None and p.shape[0] > least]
        return x + sum(p.sum() for p in kept if isinstance(p, torch.Tensor))
""",
    ),
    NearMiss(
        title="a layer that is called like a method of tensors",
        source="""\
class Net(nn.Module):
    def __init__(self, wide):
        super().__init__()
        if wide:
            self.gather = nn.Sequential(nn.Linear(3, 3))
        else:
            self.gather = nn.Identity()
        self.flip = nn.Identity()

    def forward(self, x: torch.Tensor):
        return self.gather(x) + self.flip(x)
""",
    ),
    NearMiss(
        title="sizes and dimensions that are spread",
        source="""\
class Net(nn.Module):
    def forward(self, x: torch.Tensor, order: tuple[int, ...]):
        return x.permute(*order).reshape(*x.shape[:1], -1).sum(dim=x.dim() - 1)
""",
    ),
    NearMiss(
        title="a list of two that a comparison picks from, and attributes whose names are put together",
        source="""\
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.register_buffer("places_all", torch.tensor([0, 1]))
        for n in sizes:
            setattr(self, f"width_{n}", n)

    def forward(self, x, given: dict):
        for n in (2, 3):
            x = x[:, : getattr(self, f"width_{n}")]
        return x * [1, 2][given["kind"] == 1]
""",
    ),
    NearMiss(
        title="an attribute that is made of itself",
        source="""\
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.sizes = [self.sizes[0], self.sizes[1]]

    def forward(self, x):
        return x[: self.sizes[0]]
""",
    ),
    NearMiss(
        title="what is handed over may be numbers, or nothing",
        source="""\
class Pick(nn.Module):
    def some(self, x, which=None):
        return x if which is None else x[which]

    def forward(self, x, names):
        rows = [x[i] for i, name in zip((0, 1), names)]
        return self.some(x, which=[0, 1]) + self.some(x, which=0) + self.some(x), rows
""",
    ),
    NearMiss(
        title="bounds that are sizes, and numbers of the caller",
        source="""\
class Net(nn.Module):
    def forward(self, x, start: int, cache):
        end = start + x.shape[1]
        cache[:, start:end] = x
        return cache[:, : x.size(1)]
""",
    ),
    NearMiss(
        title="a tensor that is iterated over, and unpacked",
        source="""\
class Net(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        first, second = counts
        for c in counts:
            x = x * c
        return x * first + second, list(counts), [c * 2 for c in counts]
""",
    ),
    NearMiss(
        title="max, min and sum of tensors",
        source="""\
class Net(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        top = max(counts)
        return x * max(counts[0], counts[1]) + min(counts.sum(), 3) * sum(counts) + top
""",
    ),
    NearMiss(
        title="an index that has dimensions, and a mask",
        source="""\
class Net(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        order = counts.argsort(0)
        y = x[order]
        y[counts > 1] = 0
        return y[:, None], y[torch.arange(2), order]
""",
    ),
    NearMiss(
        title="a text that is formatted, and an array that stays one",
        source="""\
class Net(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        name = f"{counts.sum()}"
        return x * torch.from_numpy(counts.cpu().numpy())[0], name
""",
    ),
    NearMiss(
        title="a length, a rank, and numbers of the configuration",
        source="""\
import math

class Net(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads

    def forward(self, x, counts: torch.Tensor):
        x = x.view(len(counts), self.heads, -1)
        return x.expand(x.shape[0], -1, x.dim()) / math.sqrt(x.shape[-1]), [None] * len(counts), range(x.dim())
""",
    ),
    NearMiss(
        title="a 0-d tensor in arithmetic and as a limit",
        source="""\
class Net(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        top = counts.max()
        return x.clamp(max=top) + torch.where(x > top, top, 0) + x.masked_fill(x > 0, top) ** top
""",
    ),
    NearMiss(
        title="nothing tells that it is a tensor",
        source="""\
class Net(nn.Module):
    def forward(self, x, state):
        start = state.position
        return x[:, start : start + 1] + torch.zeros(state.width, 1)
""",
    ),
    NearMiss(
        title="what nothing compiles",
        source="""\
def collate(rows: torch.Tensor, lengths: torch.Tensor):
    return rows[:, : lengths.max()]
""",
    ),
)
