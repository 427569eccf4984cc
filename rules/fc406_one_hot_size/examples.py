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
        if (
            torch.compiler.is_compiling()
            and isinstance(max_length, int)
            and max_length >= 0
            and indexes.dtype == torch.int64
            and indexes.numel() > 0
        ):
            torch._assert_async((indexes >= 0).all(), "Class values must be non-negative.")
            return (indexes.unsqueeze(-1) == torch.arange(max_length, device=indexes.device)).long()
        else:
            max_index = indexes.max() + 1
            return F.one_hot(indexes, max(max_index + 1, max_length))[..., :max_length]  # as TensorFlow does

    def forward(self, places):
        return self.rows(places.long(), 5).float() * 2
""",
        run="""\
def make(): return Gate()
calls = [(torch.randint(0, 9, (2, n)),) for n in (3, 4)]
""",
    ),
    Example(
        title="the number of classes has a name of its own, and the limit is a parameter",
        before="""\
class Slots(nn.Module):
    def forward(self, places, capacity: int):
        largest = places.max()
        classes = max(capacity, largest + 1)
        # what does not fit is dropped
        rows = F.one_hot(places, num_classes=classes)[..., :capacity]
        return rows.sum(0)
""",
        after="""\
class Slots(nn.Module):
    def forward(self, places, capacity: int):
        if (
            torch.compiler.is_compiling()
            and isinstance(capacity, int)
            and capacity >= 0
            and places.dtype == torch.int64
            and places.numel() > 0
        ):
            torch._assert_async((places >= 0).all(), "Class values must be non-negative.")
            rows = (places.unsqueeze(-1) == torch.arange(capacity, device=places.device)).long()
        else:
            largest = places.max()
            classes = max(capacity, largest + 1)
            # what does not fit is dropped
            rows = F.one_hot(places, num_classes=classes)[..., :capacity]
        return rows.sum(0)
""",
        run="""\
def make(): return Slots()
calls = [(torch.tensor([0, 2, 7]), 3), (torch.tensor([1, 0]), 4), (torch.tensor(3), 2)]
""",
    ),
    Example(
        title="the largest index is read as a number",
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
        if torch.compiler.is_compiling() and bins.dtype == torch.int64 and bins.numel() > 0:
            torch._assert_async((bins >= 0).all(), "Class values must be non-negative.")
            return (bins.unsqueeze(-1) == torch.arange(8, device=bins.device)).long().float().mean(0)
        else:
            return F.one_hot(bins, max(8, int(bins.max()) + 1))[..., :8].float().mean(0)
""",
        run="""\
def make(): return Bins()
calls = [(torch.rand(4, n) * 3,) for n in (3, 5)]
""",
    ),
    Example(
        title="the limit is a number of the module",
        before="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 6
        self.weight = nn.Parameter(torch.ones(6, 4))

    def forward(self, ids):
        n = torch.max(ids).item() + 1
        hot = nn.functional.one_hot(ids, max(n, self.limit))[..., :self.limit]
        return hot.float() @ self.weight
""",
        after="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 6
        self.weight = nn.Parameter(torch.ones(6, 4))

    def forward(self, ids):
        if (
            torch.compiler.is_compiling()
            and isinstance(self.limit, int)
            and self.limit >= 0
            and ids.dtype == torch.int64
            and ids.numel() > 0
        ):
            torch._assert_async((ids >= 0).all(), "Class values must be non-negative.")
            hot = (ids.unsqueeze(-1) == torch.arange(self.limit, device=ids.device)).long()
        else:
            n = torch.max(ids).item() + 1
            hot = nn.functional.one_hot(ids, max(n, self.limit))[..., :self.limit]
        return hot.float() @ self.weight
""",
        run="""\
def make(): return Positions()
calls = [(torch.randint(0, 10, (2, n)),) for n in (3, 4)]
train = True
""",
    ),
    Example(
        title="a negative limit and an empty index go the way they went",
        unsafe=True,
        before="""\
class Cut(nn.Module):
    def forward(self, ids, width):
        return F.one_hot(ids, max(1 + ids.amax(), width))[..., :width]
""",
        after="""\
class Cut(nn.Module):
    def forward(self, ids, width):
        if (
            torch.compiler.is_compiling()
            and isinstance(width, int)
            and width >= 0
            and ids.dtype == torch.int64
            and ids.numel() > 0
        ):
            torch._assert_async((ids >= 0).all(), "Class values must be non-negative.")
            return (ids.unsqueeze(-1) == torch.arange(width, device=ids.device)).long()
        else:
            return F.one_hot(ids, max(1 + ids.amax(), width))[..., :width]
""",
        run="""\
def make(): return Cut()
calls = [(torch.tensor([0, 4]), 3), (torch.tensor([1, 2]), -1), (torch.tensor([1, 2]), 0)]
""",
    ),
    Example(
        title="two limits of one index",
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
        if torch.compiler.is_compiling() and ids.dtype == torch.int64 and ids.numel() > 0:
            torch._assert_async((ids >= 0).all(), "Class values must be non-negative.")
            near = (ids.unsqueeze(-1) == torch.arange(2, device=ids.device)).long()
        else:
            near = F.one_hot(ids, max(ids.max() + 1, 2))[..., :2]
        if near.shape[0] > 2:
            if torch.compiler.is_compiling() and ids.dtype == torch.int64 and ids.numel() > 0:
                torch._assert_async((ids >= 0).all(), "Class values must be non-negative.")
                far = (ids.unsqueeze(-1) == torch.arange(9, device=ids.device)).long()
            else:
                far = F.one_hot(ids, max(ids.max() + 2, 9))[..., :9]
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
        title="too few classes, for which there is an error",
        source="""\
class M(nn.Module):
    def forward(self, ids):
        return F.one_hot(ids, max(int(ids.max()), 4))[..., :4]
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
        reported=True,
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
        reported=True,
    ),
    NearMiss(
        title="in eager code",
        source="""\
def table(ids):
    return F.one_hot(ids, max(ids.max() + 1, 4))[..., :4]
""",
    ),
)
