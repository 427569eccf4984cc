"""FC104: a read of tensor data in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Cluster, Facts, RowRead
from patcher.rule import Code, Cost, Example, Finding, Fix, Insert, NearMiss, Replace

_RUN = """
def make(): return Net()
calls = [(torch.arange(24.0).view(2, 4, 3), torch.tensor(s)) for s in ([[2, 3], [4, 1]], [[1, 2], [3, 2]])]
"""


class BreakInLoop:
    """A loop that reads tensor data on the host in each turn.

    What it does:
        Where every turn reads a row of one tensor (``sizes[i].tolist()``), all of it is read once above the loop, and
        the turns take their rows from that list. Any other loop that reads is reported, with what it costs.

    Why it breaks compilation:
        The graph ends at a read of tensor data. PyTorch resumes behind a break, but not inside of a loop: it drops the
        whole frame, and all of the function runs eagerly. Above the loop the same read costs one break.

    Fix safety:
        Safe. The numbers are the same, and reading all of a tensor cannot fail, also when the loop never runs. It is
        proven that the loop counts a range (or enumerates), that it gives neither the counter nor the tensor another
        value, that the tensor is handed to nothing but functions of PyTorch that write to nothing, and that in-place
        writes in the loop go to tensors made in this function. ``item()`` needs a known number of dimensions. Two
        arguments that share memory, one of them sizes and the other written by a call in the loop, are taken not to be.

    References:
        The position embeddings of vision models with pictures of many sizes; PyTorch, "Graph breaks" (loops).
    """

    code: ClassVar[str] = "FC104"
    name: ClassVar[str] = "break-in-loop"
    triggers: ClassVar[tuple[bytes, ...]] = (b".tolist()", b".item()", b"nonzero", b"unique", b"repeat_interleave")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.For, ast.While)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the outermost loop ``node`` when its turns read."""
        assert isinstance(node, (ast.For, ast.While))
        function = facts.function_of(node)
        if function is None or not facts.reached(node) or facts.eager_only(node) or _is_inner(node, function, facts):
            return
        inside = {n for s in node.body for n in ast.walk(s)}
        reads = tuple(r for r in facts.host_reads.of(function) if r.node in inside)
        if not any(r.certain for r in reads):
            return
        lines = ", ".join(str(n) for n in sorted({r.node.lineno for r in reads}))
        message = f"reads tensor data in a loop (line {lines}): all of `{function.name}` runs eagerly"
        message += f", some {facts.bookkeepers.of(function).operations} operations"
        rows = facts.row_reads.of(node, reads)
        if isinstance(rows, list):
            yield Finding(node, message, _fix(node, rows, facts))
        elif not isinstance(facts.clusters.of(function), Cluster):
            yield Finding(node, message, assumption=rows)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="the size of every picture",
            before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        # pictures have sizes of their own
        for i in range(x.shape[0]):
            height, width = shapes[i].tolist()  # rows and columns
            part = x[i].mean() + torch.ones(height, width)
            out[i, : height * width] = part.flatten()
        return out.sin()
""",
            after="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        shapes_rows = shapes.tolist()
        # pictures have sizes of their own
        for i in range(x.shape[0]):
            height, width = shapes_rows[i]  # rows and columns
            part = x[i].mean() + torch.ones(height, width)
            out[i, : height * width] = part.flatten()
        return out.sin()
""",
            run="train = True\n" + _RUN,
        ),
        Example(
            title="single numbers of a vector",
            before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        ends = shapes.prod(-1).flatten()
        ends = ends.new_zeros(2) + ends
        lengths = torch.full((2,), 3) + torch.arange(2)
        kept = []
        for i in range(2):
            kept.append(x[i, : lengths[i].item()])
        return torch.cat(kept).cos() + ends.sum()
""",
            after="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        ends = shapes.prod(-1).flatten()
        ends = ends.new_zeros(2) + ends
        lengths = torch.full((2,), 3) + torch.arange(2)
        kept = []
        lengths_rows = lengths.tolist()
        for i in range(2):
            kept.append(x[i, : lengths_rows[i]])
        return torch.cat(kept).cos() + ends.sum()
""",
            run=_RUN,
        ),
        Example(
            title="rows of two tensors, in an enumeration",
            before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        starts = shapes.cumsum(0) - shapes
        total = x.new_zeros(3)
        for i, part in enumerate(x):
            for n in shapes[i].tolist():
                total = total + part[0] * n
            total = total - starts[i, 1].tolist()
        return total.tanh()
""",
            after="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        starts = shapes.cumsum(0) - shapes
        total = x.new_zeros(3)
        shapes_rows = shapes.tolist()
        starts_rows = starts.tolist()
        for i, part in enumerate(x):
            for n in shapes_rows[i]:
                total = total + part[0] * n
            total = total - starts_rows[i][1]
        return total.tanh()
""",
            run=_RUN,
        ),
        Example(
            title="layers in the loop",
            before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        h = self.lin(x)
        for i in range(len(shapes)):
            rows, turns = shapes[i].tolist()
            h = self.lin(h[:, :rows]).relu() if turns > 1 else h * 2
        return h
""",
            after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        h = self.lin(x)
        shapes_rows = shapes.tolist()
        for i in range(len(shapes)):
            rows, turns = shapes_rows[i]
            h = self.lin(h[:, :rows]).relu() if turns > 1 else h * 2
        return h
""",
            run=_RUN,
        ),
        Example(
            title="columns that are used in other ways as well",
            before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        total = x.new_zeros(3)
        for i, part in enumerate(x):
            first = shapes[i, :1].sum() * 2
            for _ in range(shapes[i, 0].tolist()):
                total = total + part[0] * first
        return total.tanh()
""",
            after="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        total = x.new_zeros(3)
        shapes_rows = shapes.tolist()
        for i, part in enumerate(x):
            first = shapes[i, :1].sum() * 2
            for _ in range(shapes_rows[i][0]):
                total = total + part[0] * first
        return total.tanh()
""",
            run=_RUN,
        ),
        Example(
            title="what is read depends on the turn before",
            before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        steps = 0
        while steps < shapes.shape[0]:
            x = self.lin(x)
            steps += int(x.amax().sign().item()) + 2
        return x
""",
            after=None,
            run=_RUN,
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="the loop writes what it reads",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        x = self.lin(x)
        for i in range(2):
            height, width = shapes[i].tolist()
            shapes[1] = height
        return self.lin(x) * width


class Handed(Net):
    def forward(self, x, shapes: torch.Tensor):
        x = self.lin(x)
        for i in range(2):
            height, width = shapes[i].tolist()
            x = self.lin(x, shapes)
        return self.lin(x) * width


class Rebound(Net):
    def forward(self, x, shapes: torch.Tensor):
        x = self.lin(x)
        for i in range(2):
            height, width = shapes[i].tolist()
            shapes = shapes + height
            x = self.lin(x)
        return self.lin(x) * width


class InPlace(Net):
    def forward(self, x, shapes: torch.Tensor):
        x = self.lin(x)
        view = shapes.view(-1)
        for i in range(2):
            height, width = shapes[i].tolist()
            x = self.lin(x)
            view.add_(height)
        return self.lin(x) * width
""",
            reported=True,
        ),
        NearMiss(
            title="a row that is changed and read again, and one that is written through `out`",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        for i in range(2):
            first = shapes[i].tolist()
            first.append(3)
            x = self.lin(x) + len(shapes[i].tolist())
        return x


class Nested(Net):
    def forward(self, x, shapes: torch.Tensor):
        kept = []
        for i in range(2):
            for _ in range(2):
                x = self.lin(x)
                kept.append(shapes[i].tolist())
        kept[0].append(1)
        return x, kept


class Out(Net):
    def forward(self, x, shapes: torch.Tensor, more):
        for i in range(2):
            height, width = shapes[i].tolist()
            torch.add(more, height, out=shapes)
            x = self.lin(x) * width
        return x
""",
            reported=True,
        ),
        NearMiss(
            title="another index, and the counter gets another value",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor, order):
        for i in range(2):
            x = self.lin(x)[: shapes[order[i]].tolist()[0]]
        return x


class Counted(Net):
    def forward(self, x, shapes: torch.Tensor):
        for i in range(2):
            i = 1 - i
            x = self.lin(x)[: shapes[i].tolist()[0]]
        return x
""",
            reported=True,
        ),
        NearMiss(
            title="item() of a row with an unknown number of dimensions",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, lengths: torch.Tensor):
        for i in range(2):
            x = self.lin(x)[: lengths[i].item()]
        return x
""",
            reported=True,
        ),
        NearMiss(
            title="a list of tensors",
            source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, *shapes):
        for i in range(2):
            x = self.lin(x)[: shapes[i].tolist()[0]]
        return x
""",
            reported=True,
        ),
        NearMiss(
            title="read above the loop already",
            source="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        rows = shapes.tolist()
        for i in range(2):
            x = x[:, : rows[i][0]]
        for height, width in shapes.tolist():
            x = x * height + width
        return x
""",
        ),
        NearMiss(
            title="a loop that no forward reaches, and one that is left out",
            source="""\
def report(shapes):
    for i in range(2):
        print(shapes[i].tolist())


class Net(nn.Module):
    @torch.compiler.disable
    def sizes(self, shapes):
        found = []
        for i in range(2):
            found.append(shapes[i].tolist())
        return found

    def forward(self, x, shapes: torch.Tensor):
        return x * 2, self.sizes(shapes)
""",
        ),
        NearMiss(
            title="a read that few turns make",
            source="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor, verbose=False):
        for i in range(2):
            if verbose:
                x = x * shapes[i].tolist()[0]
        return x
""",
        ),
    )


def _is_inner(loop: ast.For | ast.While, function: ast.AST, facts: Facts) -> bool:
    """Whether another loop of ``function`` is around ``loop``."""
    for parent in facts.syntax.ancestors(loop):
        if parent is function:
            return False
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            return True
    return False


def _fix(loop: ast.For | ast.While, rows: list[RowRead], facts: Facts) -> Fix:
    names = {r.tensor.id: r.tensor for r in rows}
    lists = {name: facts.fresh_name(f"{name}_rows", loop) for name in names}
    above = tuple(Code(f"{lists[name]} = {{0}}.tolist()", (tensor,)) for name, tensor in names.items())
    edits: list[Insert | Replace] = [Insert(loop, above)]
    for row in rows:
        taken = "".join(f"[{{{i}}}]" for i in range(len(row.indices)))
        edits.append(Replace(row.node, Code(f"{lists[row.tensor.id]}{taken}", row.indices)))
    return Fix(tuple(edits))
