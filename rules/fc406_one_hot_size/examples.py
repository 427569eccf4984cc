"""What OneHotSize reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a helper that cuts what is beyond the limit",
        unsafe=True,
        before="""\
class Gate(nn.Module):
    def rows(self, indexes, max_length):
        max_index = indexes.max() + 1
        return F.one_hot(indexes, max(max_index + 1, max_length))[..., :max_length]  # as TensorFlow does

    def forward(self, places):
        return self.rows(places.long(), 5).float() * 2
""",
        after="""\
class Gate(nn.Module):
    def rows(self, indexes, max_length):
        max_index = indexes.max() + 1
        return (indexes.unsqueeze(-1) == torch.arange(max_length, device=indexes.device)).long()  # as TensorFlow does

    def forward(self, places):
        return self.rows(places.long(), 5).float() * 2
""",
        run="""\
def make(): return Gate()
calls = [(torch.randint(0, 9, (2, n)),) for n in (3, 4)]
""",
    ),
    Example(
        title="the limit is a parameter",
        unsafe=True,
        before="""\
class Slots(nn.Module):
    def forward(self, places, capacity: int):
        # what does not fit is dropped
        rows = F.one_hot(places, num_classes=max(capacity, places.max() + 1))[..., :capacity]
        return rows.sum(0)
""",
        after="""\
class Slots(nn.Module):
    def forward(self, places, capacity: int):
        # what does not fit is dropped
        rows = (places.unsqueeze(-1) == torch.arange(capacity, device=places.device)).long()
        return rows.sum(0)
""",
        run="""\
def make(): return Slots()
calls = [(torch.tensor([0, 2, 7]), 3), (torch.tensor([1, 0]), 4), (torch.tensor(3), 2)]
""",
    ),
    Example(
        title="the largest index is read as a number",
        unsafe=True,
        before="""\
class Bins(nn.Module):
    def forward(self, x):
        bins = (x * 4).long()
        return F.one_hot(bins, max(8, int(bins.max()) + 1))[..., :8].float().mean(0)
""",
        after="""\
class Bins(nn.Module):
    def forward(self, x):
        bins = (x * 4).long()
        return (bins.unsqueeze(-1) == torch.arange(8, device=bins.device)).long().float().mean(0)
""",
        run="""\
def make(): return Bins()
calls = [(torch.rand(4, n) * 3,) for n in (3, 5)]
""",
    ),
    Example(
        title="the limit is a number of the module",
        unsafe=True,
        before="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 6
        self.weight = nn.Parameter(torch.ones(6, 4))

    def forward(self, ids):
        hot = nn.functional.one_hot(ids, max(torch.max(ids).item() + 1, self.limit))[..., :self.limit]
        return hot.float() @ self.weight
""",
        after="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 6
        self.weight = nn.Parameter(torch.ones(6, 4))

    def forward(self, ids):
        hot = (ids.unsqueeze(-1) == torch.arange(self.limit, device=ids.device)).long()
        return hot.float() @ self.weight
""",
        run="""\
def make(): return Positions()
calls = [(torch.randint(0, 10, (2, n)),) for n in (3, 4)]
train = True
""",
    ),
    Example(
        title="the largest comes second",
        unsafe=True,
        before="""\
class Cut(nn.Module):
    def forward(self, ids, width):
        return F.one_hot(ids, max(1 + ids.amax(), width))[..., :width]
""",
        after="""\
class Cut(nn.Module):
    def forward(self, ids, width):
        return (ids.unsqueeze(-1) == torch.arange(width, device=ids.device)).long()
""",
        run="""\
def make(): return Cut()
calls = [(torch.tensor([0, 4]), 3), (torch.tensor([1, 2]), 0)]
""",
    ),
    Example(
        title="two limits of one index",
        unsafe=True,
        before="""\
class Both(nn.Module):
    def forward(self, ids):
        near = F.one_hot(ids, max(ids.max() + 1, 2))[..., :2]
        if near.shape[0] > 2:
            far = F.one_hot(ids, max(ids.max() + 2, 9))[..., :9]
            return near.sum() + far.sum()
        return near.sum()
""",
        after="""\
class Both(nn.Module):
    def forward(self, ids):
        near = (ids.unsqueeze(-1) == torch.arange(2, device=ids.device)).long()
        if near.shape[0] > 2:
            far = (ids.unsqueeze(-1) == torch.arange(9, device=ids.device)).long()
            return near.sum() + far.sum()
        return near.sum()
""",
        run="""\
def make(): return Both()
calls = [(torch.tensor([0, 4]),), (torch.tensor([1, 2, 12]),)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the classes are not cut",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, 4))
""",
    ),
    NearMiss(
        title="cut to another width than the least",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, 8))[..., :4]
""",
    ),
    NearMiss(
        title="the largest of another index",
        source="""\
class M(nn.Module):
    def forward(self, ids, others):
        return F.one_hot(ids, max(others.max() + 1, 4))[..., :4]
""",
    ),
    NearMiss(
        title="the index has changed since",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        n = ids.max() + 1
        ids = ids + 1
        return F.one_hot(ids, max(n, 4))[..., :4]
""",
    ),
    NearMiss(
        title="rows are cut, not classes",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, 4))[:4]
""",
    ),
    NearMiss(
        title="max is another function",
        source="""\
def max(a, b):
    return a

class M(nn.Module):
    def forward(self, ids):
        return F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]
""",
    ),
    NearMiss(
        title="the number of classes goes elsewhere, too",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        n = max(ids.max() + 1, 4)
        return F.one_hot(ids, n)[..., :4], n
""",
    ),
    NearMiss(
        title="in eager code",
        source="""\
def table(ids):
    return F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]
""",
    ),
)
