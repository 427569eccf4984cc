"""FC204: a function that reads tensor data on the host again and again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.facts.zones.clusters import Cluster, Clusters
from patcher.facts.zones.scripting import Scripting
from patcher.facts.zones.uncaptured import UncapturedReads
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Decorate,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    MoveTail,
    NearMiss,
    Rule,
)

_WIDTH = 110
#: Where a word of a class's name begins: ``SmolVLAPolicy`` is of three.
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class BreakCluster(Rule):
    """A function that reads tensor data on the host again and again, to build indices, positions or masks.

    What it does:
        Marks the function ``@torch.compiler.disable``: it runs as one piece, outside of any graph. Where it returns
        early (a result that was computed before is handed in), or computes before it reads, only the part below that
        moves, as it is, into a function of its own, named after what it reads, and that is marked; where a flag of the
        function decides whether it reads, the flag decides between the marked function and the plain one. Of functions
        that call each other the outermost is marked. This fix is made last: when another rule removes the reads, there
        is no need of it.

    Why it breaks compilation:
        Each ``.tolist()``, ``.item()``, ``nonzero()``, ``unique()``, ``repeat_interleave(x, counts)`` and ``x[mask]``
        ends the graph, in this function and in every function that called it on the way. A break in a loop drops the
        whole frame. What is read becomes a number that compiled code holds true: other pictures, other numbers, all is
        compiled again. A call that is left out ends the graph once, and nothing in it is ever compiled.

    Fix safety:
        Python runs the same statements in the same order, so values, gradients and aliasing are what eager execution
        gives. Safe where the marked part certainly holds something that no setting of Dynamo takes into a graph, so
        that nothing is lost that compiles today: with ``fullgraph=True``, with ``capture_scalar_outputs`` and
        ``capture_dynamic_output_shape_ops``, or with ``torch.export`` in strict mode. What these capture was found out
        by running it (docs/captured.md): reads by themselves, and results of unknown size; not a branch or ``range`` on
        what was read, nor a loop over, or ``.tolist()`` of, a result of unknown size. It has to be asked whenever the
        part runs, before a ``return``, of a tensor that is made there and was not compared with a size or asserted
        before. A loop over the rows of a tensor is taken to have a turn, ``groupby`` over its elements two, and a
        tensor that is handed in not to be made of a number in the code. Otherwise unsafe: right where nobody compiles
        the code like that. Unsafe also where ``torch.jit.script`` may compile it, which is presumed only of code that
        something near it prepares for that.
        The part does bookwork only: no layer, no weight, no matrix product, softmax or the like, also in the functions
        of this file that it calls (the message counts what leaves the graph); and it is not what gets compiled itself.
        A method that is overridden in another file is taken to do what the one here does. Where a class above or below
        may have a method of the same name, the new function is named after its class as well, for both may be taken
        apart. A parameter that is annotated as a tensor may still be given a number, so an annotation alone makes no
        read. Where a flag decides whether it reads, calls with the other value stay in the graph. A file that switches
        capture flags on is left alone. The rule says nothing about ``forward`` itself, about reads in one statement
        only, which is one break as it is, about a part behind which the same is read again, about reads that may not
        run, and about checks (FC102).

    References:
        Index builders of vision-language models; PyTorch, "torch.compiler.disable" and "Skipped functions" (GB0098).
    """

    code: ClassVar[str] = "FC204"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
    name: ClassVar[str] = "break-cluster"
    triggers: ClassVar[tuple[bytes, ...]] = (
        b".tolist()",
        b".item()",
        b"nonzero",
        b"repeat_interleave",
        b"unique",
        b"[",
    )
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "recompilation")
    yields_to: ClassVar[tuple[str, ...]] = ("FC301",)  # whose strategies answer for what a cache does

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the function ``node`` when it is a cluster of reads."""
        assert isinstance(node, ast.FunctionDef)
        around, cluster = facts.syntax.function_of(node), facts.ask(Clusters).of(node)
        if cluster is None or (around is not None and facts.reached(around)):  # made anew with every call of that one
            return
        if isinstance(cluster, str):
            yield Finding(node, f"`{node.name}` reads tensor data on the host again and again", assumption=cluster)
            return
        lines = sorted({r.node.lineno for r in cluster.reads})
        where = f"line{'s' if lines[1:] else ''} {', '.join(map(str, lines))}"
        message = f"`{node.name}` reads tensor data on the host ({where}): as one piece it ends the graph once"
        message += f" (and takes {cluster.operations} operations out of it)"
        disable = facts.writing.spelled("torch.compiler.disable", node)
        if disable is None or not facts.ask(Clusters).has_early(disable.partition(".")[0], node):
            yield Finding(node, message, assumption="`torch` is not imported above it")
            return
        whole = (Decorate(node, Code(disable)),)
        edits = _moved(node, cluster, disable, facts) if cluster.first else whole
        assumption = _lost(node, cluster, facts)
        safety = Applicability.UNSAFE if assumption else Applicability.SAFE
        yield Finding(node, message, Fix(edits, safety, last=True), assumption=assumption)

    invalid: ClassVar[tuple[Example, ...]] = (
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
        self._read_mask(mask, edges, ids)

        return (h + self.position(ids)).tanh()

    @torch.compiler.disable
    def _read_mask(self, mask, edges, ids):
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
        total = self._read_lengths(lengths, total, ends)
        index = torch.tensor(ends) - 1
        picked = self.second(x[index])
        return picked.relu(), total

    @torch.compiler.disable
    def _read_lengths(self, lengths, total, ends):
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
    def boundaries(self, grid: torch.Tensor, joined: bool = False):
        \"\"\"Where every picture ends.\"\"\"
        return (self._boundaries if joined else self._read_grid)(grid, joined)

    def _boundaries(self, grid: torch.Tensor, joined: bool):
        if joined:
            sizes = grid[:, 0] * grid[:, 1]
        else:
            sizes = torch.repeat_interleave(grid[:, 1], grid[:, 0])
            sizes = sizes[: grid[:, 0].max().item()]
        return F.pad(sizes.cumsum(0), (1, 0))

    _read_grid = torch.compiler.disable(_boundaries)

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
            title="a call that nothing is known of",
            before="""\
import json


class Net(nn.Module):
    def spans(self, mask, found=None):
        for row in mask:
            found = json.loads(json.dumps(row.tolist()))
        return torch.tensor(found)

    def forward(self, x, mask):
        return x * self.spans(mask)
""",
            after=None,
            run="""\
def make(): return Net()
calls = [(torch.ones(3), torch.ones(2, 3))]
""",
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
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
            title="layers that are mapped, and a property that computes",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @property
    def table(self):
        return torch.ones(9, 4) @ self.lin.weight

    def mapped(self, x, sizes):
        return torch.cat(list(map(self.lin, x.split(sizes.tolist() + sizes.tolist()))))

    def picked(self, sizes):
        return [self.table[size] for size in sizes.tolist() + sizes.flip(0).tolist()]

    def forward(self, x, sizes):
        return self.mapped(x, sizes), self.picked(sizes)
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


def _lost(function: ast.FunctionDef, cluster: Cluster, facts: Facts) -> str:
    """What has to be so for nothing to be lost that compiles the function today; "" when nothing can be."""
    first, last = cluster.first or function.body[0], cluster.last or function.body[-1]
    if cluster.flag or facts.ask(UncapturedReads).first(function, first, last) is None:
        return "nothing compiles it with `fullgraph=True`, capture flags or `torch.export`, which go through its reads"
    scripted = facts.ask(Scripting).why(function, widely=True)
    return f"`torch.jit.script` does not compile it: {scripted}" if scripted else ""


def _moved(function: ast.FunctionDef, cluster: Cluster, disable: str, facts: Facts) -> tuple[Edit, ...]:
    """The part of ``function`` that reads, as a function of its own that is left out of the graph."""
    assert cluster.first is not None
    cls, me = facts.syntax.parents.get(function), self_name(function)
    owner = f"{me}." if isinstance(cls, ast.ClassDef) else ""
    wishes = f"_read_{_word(cluster, facts)}", f"_{function.name.strip('_')}"
    eager, inner = (_fresh(wish, function, cls, facts) for wish in wishes)
    noted = [h.annotation for h in cluster.handed if h.annotation is not None]
    written = [str(me)] if owner else []
    for h in cluster.handed:
        written.append(h.name if h.annotation is None else f"{h.name}: {{{noted.index(h.annotation)}}}")
    whole = cluster.last is None and function.returns is not None
    result = f" -> {{{len(noted)}}}" if whole else ""
    parts = [*noted, *filter(None, (function.returns if whole else None,))]
    width = len(eager + ", ".join(written)) + sum(len(ast.unparse(p)) for p in parts) + function.col_offset
    inside = ", ".join(written) if width < _WIDTH else "\n" + "".join(f"    {w},\n" for w in written)
    given = f"({', '.join(h.name for h in cluster.handed)})"
    if cluster.flag:
        arms = (eager, inner) if cluster.when else (inner, eager)
        chosen = f"({owner}{arms[0]} if {cluster.flag} else {owner}{arms[1]})"
        header = Code(f"def {inner}({inside}){result}:", tuple(parts))
        moved = MoveTail(function, cluster.first, header, Code(f"return {chosen}{given}"))
        made = Code(f"{eager} = {disable}({inner})")
        return moved, Insert(function, (made,), after=True)
    header = Code(f"@{disable}\ndef {eager}({inside}){result}:", tuple(parts))
    call, left = f"{owner}{eager}{given}", ", ".join(cluster.left)
    if cluster.last is None:
        return (MoveTail(function, cluster.first, header, Code(f"return {call}")),)
    code = Code(f"{left} = {call}" if left else call)
    back = Code(f"return {left}") if left else None
    return (MoveTail(function, cluster.first, header, code, cluster.last, back),)


def _word(cluster: Cluster, facts: Facts) -> str:
    """What the code calls that which is read."""
    read = next((r for r in cluster.reads if r.certain), cluster.reads[0])
    function = facts.syntax.function_of(read.node)
    body = [] if function is None else function.body[function.body.index(cluster.first or function.body[0]) :]
    return _named(read.node, {n for s in body for n in facts.syntax.subtree(s)}, facts).strip("_").lower() or "data"


def _named(e: ast.expr, inside: set[ast.AST], facts: Facts) -> str:
    """The name that ``e`` begins with; of what is made ``inside``, that of what it is made of."""
    for n in sorted(facts.syntax.subtree(e), key=_place):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
            return n.attr
        if not isinstance(n, ast.Name) or n.id in facts.syntax.imports or n.id == "self" or facts.syntax.is_builtin(n):
            continue
        made = next((d.value for d in facts.inference.definitions(n) if d.node in inside and d.value in inside), None)
        return (_named(made, inside - {made}, facts) if made is not None else "") or n.id
    return ""


def _fresh(wish: str, function: ast.FunctionDef, cls: ast.AST | None, facts: Facts) -> str:
    if isinstance(cls, ast.ClassDef) and facts.ask(Clusters).has_relatives(function):
        wish += f"_of_{_CAPITALS.sub('_', cls.name).strip('_').lower()}"
    return (
        facts.writing.fresh_attribute(wish, cls)
        if isinstance(cls, ast.ClassDef)
        else facts.writing.fresh_name(wish, function)
    )


def _place(node: ast.AST) -> tuple[int, int, int]:
    at = (node.lineno, node.col_offset) if isinstance(node, ast.expr) else (0, 0)
    return (*at, int(isinstance(node, ast.Name)))
