"""What NonzeroIndex reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="rows that a condition over the last dimension picks",
        before="""\
class Open(nn.Module):
    def forward(self, mask):
        closed = torch.logical_not(mask)
        closed[torch.where(closed.sum(-1) == closed.shape[-1])] = False  # nothing left to look at
        return closed
""",
        after="""\
class Open(nn.Module):
    def forward(self, mask):
        closed = torch.logical_not(mask)
        _places = closed.sum(-1) == closed.shape[-1]
        closed[_places if _places.ndim else torch.where(_places)] = False  # nothing left to look at
        return closed
""",
        run="""\
def make(): return Open()
calls = [(torch.tensor(v),) for v in ([[True, False], [False, False]], [False, False], [True, True])]
""",
    ),
    Example(
        title="places as a tuple, by themselves and by a name",
        before="""\
class Clean(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        h[torch.isnan(h).nonzero(as_tuple=True)] = 0.0
        low = torch.where(h < -1)
        h[low] = -1.0
        return h
""",
        after="""\
class Clean(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        h[torch.isnan(h)] = 0.0
        low = h < -1
        h[low] = -1.0
        return h
""",
        run="""\
def make(): return Clean()
calls = [(torch.arange(n).view(1, n),) for n in (3, 4)]
train = True
""",
    ),
    Example(
        title="a condition that is not boolean, and that is changed through its places",
        before="""\
class Ones(nn.Module):
    def forward(self, x):
        y = torch.floor(x)
        y[torch.nonzero(y, as_tuple=True)] = 1
        found = torch.where(y)
        y[found] = 2
        return y[:2]
""",
        after="""\
class Ones(nn.Module):
    def forward(self, x):
        y = torch.floor(x)
        y[y != 0] = 1
        found = y != 0
        y[found] = 2
        return y[:2]
""",
        run="""\
def make(): return Ones()
calls = [(torch.tensor([0.5, 1.5, -1.5]),), (torch.tensor([[0.5], [7.5]]),)]
""",
        gain=False,
    ),
    Example(
        title="another tensor is written, which is taken to have that shape",
        before="""\
class Other(nn.Module):
    def forward(self, x, scores: torch.Tensor):
        y = x * 2
        y[torch.where(scores > 0.5)] = 0.0
        return y
""",
        after="""\
class Other(nn.Module):
    def forward(self, x, scores: torch.Tensor):
        y = x * 2
        y[scores > 0.5] = 0.0
        return y
""",
        run="""\
def make(): return Other()
calls = [(torch.ones(2, 3), torch.linspace(0, 1, 6).view(2, 3)), (torch.ones(2, 3), torch.tensor([0.2, 0.8]))]
""",
        unsafe=True,
    ),
    Example(
        title="the mask is a view of what is written",
        before="""\
class Spread(nn.Module):
    def forward(self, x):
        mask = x > 0
        mask[1:][torch.where(mask[:-1])] = True
        return mask
""",
        after="""\
class Spread(nn.Module):
    def forward(self, x):
        mask = x > 0
        mask[1:][mask[:-1] != 0] = True
        return mask
""",
        run="""\
def make(): return Spread()
calls = [(torch.tensor([1.0, -1, -1, 1, -1]),), (torch.tensor([-1.0, 1]),)]
""",
        unsafe=True,
    ),
    Example(
        title="what is read is reported",
        before="""\
class Read(nn.Module):
    def forward(self, x):
        y = x * 2
        return y[torch.where(y > 0)]
""",
        after=None,
        run="""\
def make(): return Read()
calls = [(torch.linspace(-1, 1, 5),)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a condition of each turn of a comprehension, and one that may be missing",
        source="""\
class Sums(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor, other: torch.Tensor | None = None):
        sums = [x[torch.where(ids == i)].sum() for i in range(3)]
        return sums[0] + (x[torch.where(other > 0)].sum() if other is not None else x.sum())
""",
        reported=True,
    ),
    NearMiss(
        title="the other torch.where",
        source="""\
class Choice(nn.Module):
    def forward(self, x):
        y = x * 2
        y[torch.where(y > 0, 1, 0)] = 0.0
        return y
""",
    ),
    NearMiss(
        title="places that are looped over",
        source="""\
class Loop(nn.Module):
    def forward(self, x):
        y = x * 2
        for place in (y > 0).nonzero():
            y[place] = 0.0
        return y
""",
    ),
    NearMiss(
        title="the places are needed elsewhere as well",
        source="""\
class Both(nn.Module):
    def forward(self, x):
        y = x * 2
        places = torch.where(y > 0)
        y[places] = 0.0
        return y, places
""",
    ),
    NearMiss(
        title="a method of something else",
        source="""\
class Foreign(nn.Module):
    def forward(self, x, table):
        y = x * 2
        y[table.nonzero()] = 0.0
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="rows of coordinates in place of places",
        source="""\
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        h[torch.nonzero(ids > 3)] = 0.0
        h[torch.where(ids > 3)[0]] = 0.0
        return h
""",
    ),
)
