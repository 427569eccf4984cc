"""What BreakCluster reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="positions of every picture, in a loop",
        before="""\
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 4)

    def grid_positions(self, grid: torch.Tensor, merge: int):
        \"\"\"Row and column of every patch.\"\"\"
        found = []
        for frames, height, width in grid.tolist():
            rows = torch.arange(height).view(-1, 1).expand(height, width)
            columns = torch.arange(width).view(1, -1).expand(height, width)
            for _ in range(frames):
                found.append(torch.stack([rows, columns], dim=-1).flatten(0, 1) // merge)
        return torch.cat(found) / grid.prod(dim=-1).max().item()

    def forward(self, grid):
        return self.lin(self.grid_positions(grid, 2)).relu()
""",
        after="""\
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 4)

    @torch.compiler.disable
    def grid_positions(self, grid: torch.Tensor, merge: int):
        \"\"\"Row and column of every patch.\"\"\"
        found = []
        for frames, height, width in grid.tolist():
            rows = torch.arange(height).view(-1, 1).expand(height, width)
            columns = torch.arange(width).view(1, -1).expand(height, width)
            for _ in range(frames):
                found.append(torch.stack([rows, columns], dim=-1).flatten(0, 1) // merge)
        return torch.cat(found) / grid.prod(dim=-1).max().item()

    def forward(self, grid):
        return self.lin(self.grid_positions(grid, 2)).relu()
""",
        run="""\
train = True
def make(): return Tower()
calls = [(torch.tensor(g),) for g in ([[1, 2, 4]], [[2, 4, 2]], [[1, 2, 2], [1, 4, 4]])]
""",
        unsafe=True,
    ),
    Example(
        title="a result that may be handed in keeps its way through the graph",
        before="""\
def window_starts(sizes: torch.Tensor, step: int = 2, *, ready: dict | None = None) -> torch.Tensor:
    if ready is not None and (starts := ready.pop("starts", None)) is not None:
        return starts
    # from here on the sizes are needed
    starts = [0]
    for size in sizes.tolist():
        starts.extend((torch.arange(0, size, step) + starts[-1]).tolist())
    return torch.unique_consecutive(torch.tensor(starts))


class Windows(nn.Module):
    def ends(self, sizes):
        return [torch.arange(size) + sizes.max().item() for size in sizes.tolist()]

    def forward(self, x, sizes, ready=None):
        ends = self.ends(sizes)
        return (x * 2)[:, window_starts(sizes, ready=ready)].cos(), ends
""",
        after="""\
def window_starts(sizes: torch.Tensor, step: int = 2, *, ready: dict | None = None) -> torch.Tensor:
    if ready is not None and (starts := ready.pop("starts", None)) is not None:
        return starts
    return _read_sizes(sizes, step)


@torch.compiler.disable
def _read_sizes(sizes: torch.Tensor, step: int) -> torch.Tensor:
    # from here on the sizes are needed
    starts = [0]
    for size in sizes.tolist():
        starts.extend((torch.arange(0, size, step) + starts[-1]).tolist())
    return torch.unique_consecutive(torch.tensor(starts))


class Windows(nn.Module):
    @torch.compiler.disable
    def ends(self, sizes):
        return [torch.arange(size) + sizes.max().item() for size in sizes.tolist()]

    def forward(self, x, sizes, ready=None):
        ends = self.ends(sizes)
        return (x * 2)[:, window_starts(sizes, ready=ready)].cos(), ends
""",
        run="""\
def make(): return Windows()
calls = [
    (torch.ones(2, 12), torch.tensor([4, 3])),
    (torch.ones(2, 12), torch.tensor([2, 5])),
    lambda m: m(torch.ones(2, 12), torch.tensor([4, 3]), {"starts": torch.tensor([0, 1])}),
]
""",
        unsafe=True,
    ),
    Example(
        title="a method that calls another one, masks in a loop over the batch",
        before="""\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(1, 3)
        self.deltas = None

    def _picture(self, start, grid):
        height, width = grid[0].item(), grid[1].item()
        return torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1) + start

    @torch.no_grad()
    def positions(self, ids, grids, mask):
        out = torch.zeros(2, *ids.shape, dtype=torch.long)
        pictures = iter(grids)
        for row, words in enumerate(ids):
            words = words[mask[row].bool()]
            parts, start = [], 0
            for kind in words.tolist():
                parts.append(self._picture(start, next(pictures)) if kind else torch.full((2, 1), start))
                start += 1
            placed = torch.cat(parts, dim=1)
            out[:, row, : placed.shape[1]] = placed
        return out

    def forward(self, ids, grids, mask):
        positions = self.positions(ids, grids, mask)
        return self.lin(positions.unsqueeze(-1).float())
""",
        after="""\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(1, 3)
        self.deltas = None

    def _picture(self, start, grid):
        height, width = grid[0].item(), grid[1].item()
        return torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1) + start

    @torch.no_grad()
    @torch.compiler.disable
    def positions(self, ids, grids, mask):
        out = torch.zeros(2, *ids.shape, dtype=torch.long)
        pictures = iter(grids)
        for row, words in enumerate(ids):
            words = words[mask[row].bool()]
            parts, start = [], 0
            for kind in words.tolist():
                parts.append(self._picture(start, next(pictures)) if kind else torch.full((2, 1), start))
                start += 1
            placed = torch.cat(parts, dim=1)
            out[:, row, : placed.shape[1]] = placed
        return out

    def forward(self, ids, grids, mask):
        positions = self.positions(ids, grids, mask)
        return self.lin(positions.unsqueeze(-1).float())
""",
        run="""\
def make(): return Model()
ids = torch.tensor([[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]])
mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]])
calls = [(ids, torch.tensor([[2, 2], [1, 3]]), mask), (ids, torch.tensor([[1, 2], [2, 1]]), mask)]
""",
        unsafe=True,
    ),
    Example(
        title="layers first, then the reads",
        before="""\
class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(3, 1)

    def forward(self, x, border: int = 1):
        scores = self.score(x).squeeze(-1)
        scores = scores.softmax(-1)
        # what is good enough
        rows = torch.nonzero(scores > 0.1)[:, 0]
        kept = rows[rows >= border]
        counts = torch.bincount(kept, minlength=4).tolist()
        return scores[kept], counts
""",
        after="""\
class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(3, 1)

    def forward(self, x, border: int = 1):
        scores = self.score(x).squeeze(-1)
        scores = scores.softmax(-1)
        return self._read_scores(scores, border)

    @torch.compiler.disable
    def _read_scores(self, scores, border: int):
        # what is good enough
        rows = torch.nonzero(scores > 0.1)[:, 0]
        kept = rows[rows >= border]
        counts = torch.bincount(kept, minlength=4).tolist()
        return scores[kept], counts
""",
        run="""\
train = True
def make(): return Points()
calls = [(torch.linspace(0, 1, 12 * n).view(4, n, 3),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="a loop between two layers",
        before="""\
class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3, 4)
        self.position = nn.Embedding(16, 4)
        self.side = 4

    def forward(self, x, mask):
        h = self.patch(x).relu()
        edges = torch.arange(1 / self.side, 1.0, 1 / self.side)
        ids = torch.zeros(x.shape[:2], dtype=torch.long)
        # every picture has a size of its own
        for row, kept in enumerate(mask):
            height, width = kept[:, 0].sum(), kept[0].sum()
            rows = torch.bucketize(torch.arange(height.item()) / height, edges, right=True)
            columns = torch.bucketize(torch.arange(width.item()) / width, edges, right=True)
            ids[row][kept.flatten()] = (rows[:, None] * self.side + columns).flatten()

        return (h + self.position(ids)).tanh()
""",
        after="""\
class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3, 4)
        self.position = nn.Embedding(16, 4)
        self.side = 4

    def forward(self, x, mask):
        h = self.patch(x).relu()
        edges = torch.arange(1 / self.side, 1.0, 1 / self.side)
        ids = torch.zeros(x.shape[:2], dtype=torch.long)
        self._read_height(mask, edges, ids)

        return (h + self.position(ids)).tanh()

    @torch.compiler.disable
    def _read_height(self, mask, edges, ids):
        # every picture has a size of its own
        for row, kept in enumerate(mask):
            height, width = kept[:, 0].sum(), kept[0].sum()
            rows = torch.bucketize(torch.arange(height.item()) / height, edges, right=True)
            columns = torch.bucketize(torch.arange(width.item()) / width, edges, right=True)
            ids[row][kept.flatten()] = (rows[:, None] * self.side + columns).flatten()
""",
        run="""\
train = True
def make(): return Embeddings()
mask = torch.zeros(2, 4, 4, dtype=torch.bool)
mask[0, :3, :2] = mask[1, :2, :4] = True
calls = [(torch.linspace(0, 1, 96).view(2, 16, 3), mask)]
""",
        unsafe=True,
    ),
    Example(
        title="what is read is needed below",
        before="""\
class Spans(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, x, lengths):
        x = self.first(x)
        total, ends = 0, []
        for length in lengths:
            total += length.item()
            ends.append(total)
        index = torch.tensor(ends) - 1
        picked = self.second(x[index])
        return picked.relu(), total
""",
        after="""\
class Spans(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, x, lengths):
        x = self.first(x)
        total, ends = 0, []
        total = self._read_length(lengths, total, ends)
        index = torch.tensor(ends) - 1
        picked = self.second(x[index])
        return picked.relu(), total

    @torch.compiler.disable
    def _read_length(self, lengths, total, ends):
        for length in lengths:
            total += length.item()
            ends.append(total)
        return total
""",
        run="""\
def make(): return Spans()
calls = [(torch.ones(9, 3), torch.tensor(n)) for n in ([2, 4, 1],)]
""",
        unsafe=True,
    ),
    Example(
        title="a class above reads as well: the names of both classes tell their methods apart",
        before="""\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.step = 2

    def spans(self, x, grid):
        x = self.lin(x)
        out = []
        for n in grid.tolist():
            out.extend(torch.arange(n * self.step).tolist())
        return x, out


class Sub(Base):
    def rows(self, x, grid):
        x = self.lin(x)
        out = []
        for n in grid.tolist():
            out.extend(torch.arange(n + self.step).tolist())
        return x, out

    def forward(self, x, grid):
        return self.spans(x, grid), self.rows(x, grid)
""",
        after="""\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.step = 2

    def spans(self, x, grid):
        x = self.lin(x)
        out = []
        return self._read_base_grid(x, grid, out)

    @torch.compiler.disable
    def _read_base_grid(self, x, grid, out):
        for n in grid.tolist():
            out.extend(torch.arange(n * self.step).tolist())
        return x, out


class Sub(Base):
    def rows(self, x, grid):
        x = self.lin(x)
        out = []
        return self._read_sub_grid(x, grid, out)

    @torch.compiler.disable
    def _read_sub_grid(self, x, grid, out):
        for n in grid.tolist():
            out.extend(torch.arange(n + self.step).tolist())
        return x, out

    def forward(self, x, grid):
        return self.spans(x, grid), self.rows(x, grid)
""",
        run="""\
def make(): return Sub()
calls = [(torch.ones(2, 3), torch.tensor(g)) for g in ([1, 2], [3, 1])]
""",
        unsafe=True,
    ),
    Example(
        title="global positions of an attention pattern",
        before="""\
class Attention(nn.Module):
    @staticmethod
    def global_indices(mask):
        number = mask.long().sum(dim=1)
        most = number.max()
        where = mask.nonzero(as_tuple=True)
        local = torch.arange(most, device=mask.device) < number.unsqueeze(-1)
        return number, where, local.nonzero(as_tuple=True)

    def forward(self, x, mask):
        number, where, local = self.global_indices(mask)
        picked = x.new_zeros(x.shape[0], 3, x.shape[2])
        picked[local] = x[where]
        return picked.tanh() + number[:, None, None]
""",
        after="""\
class Attention(nn.Module):
    @staticmethod
    @torch.compiler.disable
    def global_indices(mask):
        number = mask.long().sum(dim=1)
        most = number.max()
        where = mask.nonzero(as_tuple=True)
        local = torch.arange(most, device=mask.device) < number.unsqueeze(-1)
        return number, where, local.nonzero(as_tuple=True)

    def forward(self, x, mask):
        number, where, local = self.global_indices(mask)
        picked = x.new_zeros(x.shape[0], 3, x.shape[2])
        picked[local] = x[where]
        return picked.tanh() + number[:, None, None]
""",
        run="""\
def make(): return Attention()
calls = [(torch.linspace(0, 1, 24).view(2, 4, 3), torch.tensor(m) > 0) for m in ([[1, 0, 1, 1], [0, 1, 1, 1]],)]
""",
        unsafe=True,
    ),
    Example(
        title="a flag says whether it reads",
        before="""\
class Packed(nn.Module):
    def boundaries(self, grid: torch.Tensor, joined: bool = False):
        \"\"\"Where every picture ends.\"\"\"
        if joined:
            sizes = grid[:, 0] * grid[:, 1]
        else:
            sizes = torch.repeat_interleave(grid[:, 1], grid[:, 0])
            sizes = sizes[: grid[:, 0].max().item()]
        return F.pad(sizes.cumsum(0), (1, 0))

    def forward(self, x, grid, joined=False):
        return x.sin() + self.boundaries(grid, joined)[-1]
""",
        after="""\
class Packed(nn.Module):
    @torch.compiler.disable
    def boundaries(self, grid: torch.Tensor, joined: bool = False):
        \"\"\"Where every picture ends.\"\"\"
        if joined:
            sizes = grid[:, 0] * grid[:, 1]
        else:
            sizes = torch.repeat_interleave(grid[:, 1], grid[:, 0])
            sizes = sizes[: grid[:, 0].max().item()]
        return F.pad(sizes.cumsum(0), (1, 0))

    def forward(self, x, grid, joined=False):
        return x.sin() + self.boundaries(grid, joined)[-1]
""",
        run="""\
def make(): return Packed()
grids = [torch.tensor(g) for g in ([[2, 3], [1, 2]], [[1, 4], [3, 2]])]
calls = [(torch.ones(3), grid, joined) for grid in grids for joined in (False, True)]
""",
        unsafe=True,
    ),
    Example(
        title="two reads in one statement, looped over",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def places(self, grid, merge: int):
        merges = torch.full((len(grid),), merge)
        found = []
        for (rows, columns), size in zip(grid.tolist(), merges.tolist()):
            row = torch.arange(rows)[:, None].expand(rows, columns)
            column = torch.arange(columns).expand(rows, columns)
            found.append(torch.stack([row, column], dim=-1).reshape(-1, 2) // size)
        return torch.cat(found)

    def forward(self, x, grid):
        h = self.lin(x)
        return h + self.lin(self.places(grid, 2).to(x.dtype))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    @torch.compiler.disable
    def places(self, grid, merge: int):
        merges = torch.full((len(grid),), merge)
        found = []
        for (rows, columns), size in zip(grid.tolist(), merges.tolist()):
            row = torch.arange(rows)[:, None].expand(rows, columns)
            column = torch.arange(columns).expand(rows, columns)
            found.append(torch.stack([row, column], dim=-1).reshape(-1, 2) // size)
        return torch.cat(found)

    def forward(self, x, grid):
        h = self.lin(x)
        return h + self.lin(self.places(grid, 2).to(x.dtype))
""",
        run="""\
def make(): return Net()
calls = [
    (torch.ones(8, 2), torch.tensor([[2, 2], [2, 2]])),
    (torch.ones(6, 2), torch.tensor([[1, 4], [2, 1]])),
]
""",
        unsafe=True,
    ),
)
VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="below a loop that reads and stays: what follows it runs eagerly as it is",
        source="""\
class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, ids):
        return self.fill(self.lin(x), ids)

    def fill(self, x, ids):
        for i in ids.unique():
            x = self.lin(x) * i.item()
        out = torch.zeros_like(x)
        for n, i in enumerate(ids.unique().tolist()):
            if ids[n].item() > 1:
                out[n] = i
        return out + x
""",
        reported=True,
    ),
    NearMiss(
        title="a single read with nothing above it or below it, and one in the midst of much",
        source="""\
def above(grid: torch.Tensor):
    return (grid[:, 0] * grid[:, 1]).clamp(min=1).tolist()


def below(grid: torch.Tensor):
    return torch.repeat_interleave(grid, 2 + len(grid.tolist())) * 2 + 1


def amidst(grid: torch.Tensor, x: torch.Tensor):
    x = x * 2 + 1 - x.abs() * 3 + x.clamp(0, 1) - x.floor() * 2
    n = grid.sum().item()
    return (x + n) * 2 + 1 - x.abs() * 3 + x.clamp(0, 1) - x.floor() * 2


class Net(nn.Module):
    def forward(self, x, grid: torch.Tensor):
        return [p.sum() for p in x.split(above(grid))], below(grid), amidst(grid, x)
""",
    ),
    NearMiss(
        title="a single read, and one in forward",
        source="""\
def lengths(mask):
    return mask.tolist()


class Net(nn.Module):
    def forward(self, x, mask):
        first, second = mask[0].item(), mask[1].item()
        return [p.sum() for p in x.split(lengths(mask))], self.lin(x) * first * second
""",
    ),
    NearMiss(
        title="layers and weights between the reads",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def chunks(self, x, sizes):
        out = []
        for size in sizes.tolist():
            out.append(self.lin(x[:size]))
        return torch.cat(out)

    def weighted(self, x, sizes):
        return [x[:size] * self.lin.weight.sum() for size in sizes.tolist() + sizes.flip(0).tolist()]

    def attended(self, x, sizes):
        first, second = sizes[0].item(), sizes[1].item()
        return x[:first] @ x[:second].T

    def forward(self, x, sizes):
        return self.chunks(x, sizes), self.weighted(x, sizes), self.attended(x, sizes)
""",
    ),
    NearMiss(
        title="reads that may not run",
        source="""\
def sizes_of(grid, cached=None, flat=True):
    if cached is not None:
        rows, columns = cached
    else:
        rows, columns = grid[:, 0].tolist(), grid[:, 1].tolist()
    for row in rows:
        if flat:
            continue
        rows = grid.sum().item() + grid.max().item()
    return rows, columns


class Net(nn.Module):
    def forward(self, x, grid):
        return x * 2, sizes_of(grid, cached=([1], [2]))
""",
    ),
    NearMiss(
        title="two reads in one test, the second of which may not run",
        source="""\
def fitted(x, mean, spread):
    if mean.item() == 0 or spread.item() == 1:
        mean, spread = x.mean(), x.std()
    return x.sub(mean).div(spread)


class Net(nn.Module):
    def forward(self, x, mean, spread):
        return fitted(x, mean, spread)
""",
    ),
    NearMiss(
        title="elements that are left out, or never asked for",
        source="""\
def kept(grid, number, some=False):
    rows = [row.tolist() for row in grid if some]
    first = next((row.tolist() for row in grid), None)
    return rows, first, 9 < number < grid.max().item(), 9 < number < grid.min().item()


class Net(nn.Module):
    def forward(self, x, grid):
        return x * 2, kept(grid, 3)
""",
    ),
    NearMiss(
        title="methods of other objects with these names",
        source="""\
class Meter:
    def item(self):
        return 3


class Net(nn.Module):
    def unique(self, x):
        return x + 1

    def shifted(self, x, meter):
        return self.unique(x) * 2 + self.unique(x) * meter.item() + meter.item()

    def forward(self, x):
        return self.shifted(x, Meter())
""",
    ),
    NearMiss(
        title="a function that is made anew with every call",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, grid):
        def one(row):
            return torch.arange(row.tolist()[0]) + row.sum().item()

        return self.lin(x) + one(grid[0]).sum()
""",
    ),
    NearMiss(
        title="reads that a graph is to go through",
        source="""\
def captured():
    torch._dynamo.config.capture_scalar_outputs = True


class Net(nn.Module):
    def ends(self, sizes):
        return torch.arange(9)[sizes.min().item() :] + sizes.max().item()

    def forward(self, x, sizes):
        return x + self.ends(sizes).sum()
""",
    ),
    NearMiss(
        title="numbers that are annotated as tensors",
        source="""\
def coordinates(height: torch.Tensor, width: torch.Tensor):
    rows = torch.arange(0, height) / height
    columns = torch.arange(0, width) / width
    steps = int(height) + int(width)
    return rows[:, None] + columns * steps


class Net(nn.Module):
    def forward(self, x):
        return x * coordinates(x.shape[0], x.shape[1])
""",
    ),
    NearMiss(
        title="checks",
        source="""\
def checked(ids, sizes):
    assert (ids >= 0).all().item(), "negative"
    assert sizes.sum().item() == ids.numel()
    if (ids > 100).any():
        raise ValueError("too large")
    if sizes.max() > 10:
        raise ValueError("too long")
    return ids * 2 + sizes.cumsum(0)[-1] - 1


class Net(nn.Module):
    def forward(self, ids, sizes):
        return checked(ids, sizes)
""",
    ),
    NearMiss(
        title="left out already, and what is called from there",
        source="""\
class Net(nn.Module):
    @torch.compiler.disable
    def positions(self, grid):
        return torch.cat([self.one(g) for g in grid])

    def one(self, grid):
        return torch.arange(grid[0].item()) + grid[1].item()

    def forward(self, grid):
        return self.positions(grid).sin()
""",
    ),
    NearMiss(
        title="nobody compiles it, and one that is compiled itself",
        source="""\
def report(grid):
    for row in grid:
        print(row.tolist(), row.sum().item())
    return torch.cat([torch.arange(n) for n in grid[:, 0].tolist()])


@torch.compile
def compiled(grid):
    return torch.arange(grid[0].item()) + grid[1].item()


class Net(nn.Module):
    def forward(self, x):
        return x * 2
""",
    ),
    NearMiss(
        title="names that may have no value, and functions that live on",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, sizes):
        h = self.lin(x)
        for size in sizes:
            last = size.item() + 1
        h = self.lin(h)
        return h * last


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, sizes):
        h, late = self.lin(x), []
        for size in sizes:
            late.append((lambda n: n + size.item())(size.item()))
        return self.lin(h) + sum(late)
""",
        reported=True,
    ),
    NearMiss(
        title="decorators that may do anything, and a module without torch on top",
        source="""\
import functools


@functools.lru_cache
def table(grid):
    return [torch.arange(n) + m for n, m in zip(grid[:, 0].tolist(), grid[:, 1].tolist())]


class Net(nn.Module):
    def forward(self, x, grid):
        return x, table(grid)
""",
        reported=True,
    ),
)
