"""What UnsizedRepeatInterleave reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a number for each, from a list of lengths",
        before="""\
class Owners(nn.Module):
    def forward(self, parts):
        lengths = [len(p) for p in parts]
        owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        return torch.cat(parts) + owners
""",
        after="""\
class Owners(nn.Module):
    def forward(self, parts):
        lengths = [len(p) for p in parts]
        owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths), output_size=sum(lengths))
        return torch.cat(parts) + owners
""",
        run="""\
def make(): return Owners()
calls = [([torch.ones(n) for n in v],) for v in ((1, 2), (2, 3), (4,))]
""",
        unsafe=True,
    ),
    Example(
        title="a method, with names for what it works on",
        before="""\
class Named(nn.Module):
    def forward(self, x, counts: list[int]):
        order = torch.arange(len(counts), device=x.device)
        repeats = torch.tensor(counts).to(x.device)
        return x + order.repeat_interleave(repeats, dim=0)  # one after the other
""",
        after="""\
class Named(nn.Module):
    def forward(self, x, counts: list[int]):
        order = torch.arange(len(counts), device=x.device)
        repeats = torch.tensor(counts).to(x.device)
        return x + order.repeat_interleave(repeats, dim=0, output_size=sum(counts))  # one after the other
""",
        run="""\
def make(): return Named()
calls = [(torch.ones(5), [2, 3]), (torch.ones(5), [1, 4])]
""",
        unsafe=True,
    ),
    Example(
        title="a list that is taken to fit",
        before="""\
class Fit(nn.Module):
    def forward(self, x, counts: list):
        return x.repeat_interleave(repeats=torch.tensor(counts), dim=0) * 2
""",
        after="""\
class Fit(nn.Module):
    def forward(self, x, counts: list):
        return x.repeat_interleave(repeats=torch.tensor(counts), dim=0, output_size=sum(counts)) * 2
""",
        run="""\
def make(): return Fit()
calls = [(torch.ones(2, 2), [1, 2]), (torch.ones(2, 2), [3, 2])]
""",
        unsafe=True,
    ),
    Example(
        title="as many as what it is added to",
        before="""\
class Shift(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        n = x.shape[0]
        starts = counts.cumsum(0) - counts
        return x[torch.arange(n) - torch.repeat_interleave(starts, counts)]
""",
        after="""\
class Shift(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        n = x.shape[0]
        starts = counts.cumsum(0) - counts
        return x[torch.arange(n) - torch.repeat_interleave(starts, counts, output_size=n)]
""",
        run="""\
def make(): return Shift()
calls = [(torch.linspace(0, 1, 2 * n).view(n, 2), torch.tensor([2, n - 2])) for n in (4, 5)]
""",
        unsafe=True,
    ),
    Example(
        title="known on the device only",
        before="""\
class Grid(nn.Module):
    def forward(self, grid: torch.Tensor):
        lengths = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
        return lengths.cumsum(0)
""",
        after=None,
        run="""\
def make(): return Grid()
calls = [(torch.tensor([[1, 2, 2], [2, 2, 4]]),)]
""",
    ),
    Example(
        title="a docstring says that it is a tensor",
        before="""\
class Spread(nn.Module):
    def forward(self, xs, counts):
        \"\"\"Repeat each row.

        Args:
            counts (LongTensor): how often, for each element.
        \"\"\"
        return [torch.repeat_interleave(x, n, dim=0) for x, n in zip(xs, counts)]
""",
        after=None,
        run="""\
def make(): return Spread()
calls = [(torch.ones(2, 2, 3), torch.tensor([[1, 2], [3, 0]]))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a Python int does not break the graph",
        source="""\
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.groups = 2

    def forward(self, k):
        return k.repeat_interleave(self.groups, dim=1), torch.repeat_interleave(k, 2)
""",
    ),
    NearMiss(
        title="the size is given",
        source="""\
class Given(nn.Module):
    def forward(self, x, counts: torch.Tensor):
        return torch.repeat_interleave(x, counts, dim=0, output_size=x.shape[0] * 2)
""",
    ),
    NearMiss(
        title="the size may be left out, and no call does",
        source="""\
def owners(counts: torch.Tensor, size=None):
    return torch.arange(counts.shape[0]).repeat_interleave(counts, output_size=size)

class Told(nn.Module):
    def forward(self, x, counts):
        return owners(counts, size=x.shape[0])
""",
    ),
    NearMiss(
        title="repeats that are computed from a list",
        source="""\
class Halved(nn.Module):
    def forward(self, x):
        counts = [len(x), 2]
        return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts) // 2)
""",
        reported=True,
    ),
    NearMiss(
        title="nobody knows whether it is a tensor",
        source="""\
class Open(nn.Module):
    def forward(self, x, times):
        return x.repeat_interleave(times, dim=0)
""",
    ),
    NearMiss(
        title="another sum",
        source="""\
class Total(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        sum = torch.cat(parts).sum()
        return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)) + sum
""",
        reported=True,
    ),
)
