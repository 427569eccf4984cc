"""What TolistLoop reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)

INVALID: tuple[Example, ...] = (
    Example(
        title="what is split would be computed twice",
        before="""\
class Cast(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        # one chunk for each sample
        parts = torch.split(x * 2, counts.tolist())
        return torch.cat([p.float().contiguous() for p in parts], dim=0)
""",
        after=None,
        run="""\
def make(): return Cast()
calls = [(torch.ones(5, 3), torch.tensor([[1, 2, 0], [1, 2, 3]]))]
""",
    ),
    Example(
        title="chunks that are concatenated in the same function",
        before="""\
class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        # one chunk for each sample
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2
""",
        after="""\
class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        if torch.compiler.is_compiling():  # one chunk will do: they are concatenated
            _fits = (counts.sum() == x.shape[0]) & (counts >= 0).all() & (counts.ndim == 1 and len(counts) > 0)
            torch._assert_async(_fits, "the sizes of the chunks must add up")
        # one chunk for each sample
        parts = torch.split(x, [x.shape[0]] if torch.compiler.is_compiling() else counts.tolist())
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2
""",
        run="""\
def make(): return Whole()
ids = torch.tensor([[1, 2, 0], [1, 2, 3]])
calls = [(torch.ones(5, 3), ids), (torch.ones(4, 3), ids), (torch.ones(2, 3), ids - 1)]
""",
        unsafe=True,
    ),
    Example(
        title="sizes with a name, for two tensors",
        before="""\
class Pair(nn.Module):
    def forward(self, x, y, bounds: torch.LongTensor):
        sizes = (
            (bounds[1:] - bounds[:-1])
            .to(torch.int64)
            .tolist()
        )  # of the samples
        xs = x.split(sizes, dim=1)
        ys = [part.to(torch.float64) for part in y.split(sizes, 1)]
        return torch.cat(xs, 1), torch.cat(ys, dim=1)
""",
        after="""\
class Pair(nn.Module):
    def forward(self, x, y, bounds: torch.LongTensor):
        # of the samples
        if torch.compiler.is_compiling():  # one chunk will do: they are concatenated
            _sizes = ((bounds[1:] - bounds[:-1])
                .to(torch.int64))
            _fits = (_sizes.sum() == x.shape[1]) & (_sizes >= 0).all() & (_sizes.ndim == 1 and len(_sizes) > 0)
            torch._assert_async(_fits, "the sizes of the chunks must add up")
            sizes = [x.shape[1]]
        else:
            sizes = (
                (bounds[1:] - bounds[:-1])
                .to(torch.int64)
                .tolist()
            )
        xs = x.split(sizes, dim=1)
        ys = [part.to(torch.float64) for part in y.split(sizes, 1)]
        return torch.cat(xs, 1), torch.cat(ys, dim=1)
""",
        run="""\
def make(): return Pair()
def data(x, y, *bounds): return torch.ones(2, x, 3), torch.ones(2, y), torch.tensor(bounds)
calls = [data(5, 5, 0, 2, 5), data(4, 4, 0, 4), data(5, 4, 0, 2, 5), data(5, 5, 0, 7, 5), data(3, 3, 0, 1, 2)]
""",
        unsafe=True,
    ),
    Example(
        title="chunks in an attribute of what a method returns",
        before="""\
class Output:
    def __init__(self, pooled):
        self.pooled = pooled

class Sees(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.lin = 2, nn.Linear(3, 3)

    def pool(self, x):
        return Output(self.lin(x))

    def images(self, x, grid):
        out = self.pool(x)
        sizes = (grid.prod(-1) // self.scale).tolist()
        out.pooled = torch.split(out.pooled, sizes)
        return out

    def forward(self, x, grid):
        seen = {}
        seen["image"] = self.images(x, grid)
        embeds = seen["image"].pooled
        embeds = torch.cat(embeds, dim=0).to(x.dtype)
        return embeds + x
""",
        after="""\
class Output:
    def __init__(self, pooled):
        self.pooled = pooled

class Sees(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.lin = 2, nn.Linear(3, 3)

    def pool(self, x):
        return Output(self.lin(x))

    def images(self, x, grid):
        out = self.pool(x)
        if torch.compiler.is_compiling():  # one chunk will do: they are concatenated
            _sizes = (grid.prod(-1) // self.scale)
            _fits = (_sizes.sum() == out.pooled.shape[0]) & (_sizes >= 0).all() & (_sizes.ndim == 1 and len(_sizes) > 0)
            torch._assert_async(_fits, "the sizes of the chunks must add up")
            sizes = [out.pooled.shape[0]]
        else:
            sizes = (grid.prod(-1) // self.scale).tolist()
        out.pooled = torch.split(out.pooled, sizes)
        return out

    def forward(self, x, grid):
        seen = {}
        seen["image"] = self.images(x, grid)
        embeds = seen["image"].pooled
        embeds = torch.cat(embeds, dim=0).to(x.dtype)
        return embeds + x
""",
        run="""\
def make(): return Sees()
calls = [(torch.ones(5, 3), torch.tensor([[1, 4], [2, 3]])), (torch.ones(6, 3), torch.tensor([[1, 4], [2, 3]]))]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="chunks that a method returns",
        before="""\
class Layers(nn.Module):
    def forward(self, x, lengths):
        return torch.cat(self.chunks(x, lengths)) + 1

    def chunks(self, x, lengths):
        parts = x.split(lengths.tolist())
        return [f.reshape(-1, f.shape[-1]) for f in parts]
""",
        after="""\
class Layers(nn.Module):
    def forward(self, x, lengths):
        return torch.cat(self.chunks(x, lengths)) + 1

    def chunks(self, x, lengths):
        if torch.compiler.is_compiling():  # one chunk will do: they are concatenated
            _fits = (lengths.sum() == x.shape[0]) & (lengths >= 0).all() & (lengths.ndim == 1 and len(lengths) > 0)
            torch._assert_async(_fits, "the sizes of the chunks must add up")
        parts = x.split([x.shape[0]] if torch.compiler.is_compiling() else lengths.tolist())
        return [f.reshape(-1, f.shape[-1]) for f in parts]
""",
        run="""\
def make(): return Layers()
calls = [(torch.ones(5, 2, 3), torch.tensor([2, 3])), (torch.ones(5, 2, 3), torch.tensor([1, 0, 4]))]
""",
        unsafe=True,
    ),
    Example(
        title="a loop over the numbers is reported",
        before="""\
class Looped(nn.Module):
    def forward(self, x, grid):
        for height, width in grid.tolist():
            x = x + torch.arange(height * width).sum()
        return x
""",
        after=None,
        run="""\
def make(): return Looped()
calls = [(torch.ones(3), torch.tensor([[1, 2], [3, 4]]))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="each chunk by itself",
        source="""\
class Softened(nn.Module):
    def forward(self, x, lengths):
        return torch.cat([p.softmax(0) for p in x.split(lengths.tolist())], dim=0)
""",
        reported=True,
    ),
    NearMiss(
        title="put together along another dimension",
        source="""\
class Turned(nn.Module):
    def forward(self, x, lengths):
        return torch.cat(x.split(lengths.tolist()), dim=1)
""",
        reported=True,
    ),
    NearMiss(
        title="the first chunk is looked at as well",
        source="""\
class First(nn.Module):
    def forward(self, x, lengths):
        parts = x.split(lengths.tolist())
        return torch.cat(parts), parts[0].sum()
""",
        reported=True,
    ),
    NearMiss(
        title="the sizes are used for something else, too",
        source="""\
class Sized(nn.Module):
    def forward(self, x, lengths):
        sizes = lengths.tolist()
        return torch.cat(x.split(sizes)) * max(sizes)
""",
        reported=True,
    ),
    NearMiss(
        title="the caller counts the chunks",
        source="""\
class Counted(nn.Module):
    def chunks(self, x, lengths):
        return x.split(lengths.tolist())

    def forward(self, x, lengths):
        parts = self.chunks(x, lengths)
        return torch.cat(parts) / len(parts)
""",
        reported=True,
    ),
    NearMiss(
        title="the chunks are kept in the module",
        source="""\
class Keeps(nn.Module):
    def forward(self, x, lengths):
        self.parts = x.split(lengths.tolist())
        return torch.cat(self.parts)
""",
        reported=True,
    ),
    NearMiss(
        title="the chunks are what the model returns",
        source="""\
class Returned(nn.Module):
    def forward(self, x, lengths):
        return x.split(lengths.tolist())
""",
        reported=True,
    ),
    NearMiss(
        title="an attribute that another caller takes apart",
        source="""\
class Apart(nn.Module):
    def images(self, x, lengths):
        output = dict.fromkeys("ab")
        output.pooled = x.split(lengths.tolist())
        return output

    def forward(self, x, lengths):
        one = torch.cat(self.images(x, lengths).pooled)
        return one, [p.mean() for p in self.images(x, lengths).pooled]
""",
        reported=True,
    ),
    NearMiss(
        title="what a part of the model returns may go anywhere",
        source="""\
class Part(nn.Module):
    def forward(self, x, lengths):
        output = dict.fromkeys("ab")
        output.pooled = x.split(lengths.tolist())
        return output

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def images(self, x, lengths):
        output = dict.fromkeys("ab")
        output.pooled = x.split(lengths.tolist())
        return output

    def forward(self, x, lengths):
        if x.shape[0] > 9:
            return self.images(x, lengths)
        return torch.cat(self.images(x, lengths).pooled), len(self.part(x, lengths).pooled)
""",
        reported=True,
    ),
    NearMiss(
        title="floats, numbers that wrap round, steps that may go down, numbers of the data, a list of another name",
        source="""\
class Other(nn.Module):
    def forward(self, x, start):
        a = torch.arange(3.0).tolist()
        b = torch.arange(x.dim(), dtype=torch.uint8).tolist()
        c = torch.arange(0, x.dim(), -1).tolist()
        d = torch.arange(start).tolist()
        e = torch.arange(x.dim(), dtype=torch.float32).tolist()
        return x + len(a) + b[0] + c[0] + d[0] + e[0]


class Named(nn.Module):
    def forward(self, x, range):
        return x.mean(torch.arange(x.dim()).tolist()) + range
""",
        reported=True,
    ),
    NearMiss(
        title="only eager code reads the numbers",
        source="""\
class Guarded(nn.Module):
    def forward(self, x, lengths):
        if not torch.compiler.is_compiling():
            x = torch.cat(x.split(lengths.tolist()))
        return x
""",
    ),
    NearMiss(
        title="numbers that never were in a tensor",
        source="""\
import numpy as np

class Host(nn.Module):
    def forward(self, x):
        return torch.cat(x.split(np.arange(3).tolist()))
""",
    ),
)
