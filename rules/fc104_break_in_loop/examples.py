"""What BreakInLoop reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = """
def make(): return Net()
calls = [(torch.arange(24.0).view(2, 4, 3), torch.tensor(s)) for s in ([[2, 3], [4, 1]], [[1, 2], [3, 2]])]
"""

_BLOCKS = """
def make():
    torch.manual_seed(0)
    return Tower()
calls = [(torch.linspace(-1, 1, 20).view(5, 4), torch.tensor([2, 3]))]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="the size of every picture",
        before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        out = torch.zeros(x.shape[0], 12)
        # pictures have sizes of their own
        for i in range(shapes.shape[0]):
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
        for i in range(shapes.shape[0]):
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
        title="a tensor that is gone through, with a counter",
        before="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        sizes = torch.stack([shapes.sum(-1), shapes.prod(-1)])
        known = {}
        for i, size in enumerate(sizes):
            size = tuple(size.tolist())
            if size not in known:
                known[size] = x.new_ones(size[0]) * i
        return x.tanh().sum() + torch.cat(list(known.values()))
""",
        after="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        sizes = torch.stack([shapes.sum(-1), shapes.prod(-1)])
        known = {}
        sizes_rows = sizes.tolist()
        for i, size in enumerate(sizes):
            size = tuple(sizes_rows[i])
            if size not in known:
                known[size] = x.new_ones(size[0]) * i
        return x.tanh().sum() + torch.cat(list(known.values()))
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
        for i in range(shapes.shape[0]):
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
        for i in range(shapes.shape[0]):
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
        title="rows of what is only said to be a tensor: a list of tensors would do as well",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        for i in range(2):
            rows, turns = shapes[i].tolist()
            x = self.lin(x[:, :rows]).relu() if turns > 1 else x * 2
        return x
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, shapes: torch.Tensor):
        shapes_rows = shapes.tolist()
        for i in range(2):
            rows, turns = shapes_rows[i]
            x = self.lin(x[:, :rows]).relu() if turns > 1 else x * 2
        return x
""",
        run=_RUN,
        unsafe=True,
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
    Example(
        title="layers that read, and what is around their loop",
        before="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        parts = torch.split(self.lin(x), lengths.tolist())
        return torch.cat([part - part.mean(0) for part in parts])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        # one after the other
        for block in self.blocks:  # with its residual
            x = x + block(x, lengths)

        return self.merger(self.norm(x)).tanh()
""",
        after="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        parts = torch.split(self.lin(x), lengths.tolist())
        return torch.cat([part - part.mean(0) for part in parts])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        x = self._forward_loop(x, lengths)

        return self.merger(self.norm(x)).tanh()

    def _forward_loop(self, x, lengths):
        # one after the other
        for block in self.blocks:  # with its residual
            x = x + block(x, lengths)
        return x
""",
        run="train = True\n" + _BLOCKS,
    ),
    Example(
        title="layers that may read: where they do not, all stays in one graph",
        before="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        if joined:
            return self.lin(x)
        return torch.cat([self.lin(part) for part in torch.split(x, lengths.tolist())])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths, **kwargs):
        x = self.merger(x) + self.norm(x * 2)
        kept = []
        for i, block in enumerate(self.blocks[:2]):
            x = x + block(x, lengths, **kwargs)
            if i > 0:
                kept.append(x)
        for i, first in enumerate(kept):
            x = x + first * i
        return self.merger(self.norm(x)).tanh()
""",
        after="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        if joined:
            return self.lin(x)
        return torch.cat([self.lin(part) for part in torch.split(x, lengths.tolist())])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths, **kwargs):
        x = self.merger(x) + self.norm(x * 2)
        kept = []
        x = self._forward_loop(x, lengths, kwargs, kept)
        for i, first in enumerate(kept):
            x = x + first * i
        return self.merger(self.norm(x)).tanh()

    def _forward_loop(self, x, lengths, kwargs, kept):
        for i, block in enumerate(self.blocks[:2]):
            x = x + block(x, lengths, **kwargs)
            if i > 0:
                kept.append(x)
        return x
""",
        run="""\
def make():
    torch.manual_seed(0)
    return Tower()
calls = [lambda m: m(torch.arange(20.0).view(5, 4), torch.tensor([2, 3]), joined=True)]
""",
        gain=False,
    ),
    Example(
        title="a loop that ends when the numbers say so",
        before="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        return self.lin(x).relu() + lengths.sum()


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        x, turns = self.norm(self.merger(x) + x), 0
        while x.amax().item() < 3:
            x = self.blocks[turns](x, lengths) + 2
            turns += 1
        return self.norm(self.merger(x) - x) * turns
""",
        after="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        return self.lin(x).relu() + lengths.sum()


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        x, turns = self.norm(self.merger(x) + x), 0
        turns, x = self._forward_loop(x, lengths, turns)
        return self.norm(self.merger(x) - x) * turns

    @torch.compiler.disable(recursive=False)
    def _forward_loop(self, x, lengths, turns):
        while x.amax().item() < 3:
            x = self.blocks[turns](x, lengths) + 2
            turns += 1
        return turns, x
""",
        run=_BLOCKS,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="one list for several keys",
        source="""\
class Boxes(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        out = []
        for i in range(2):
            boxes = {k: sizes[i].tolist() for k in "ab"}
            boxes["a"][0] += 5
            out.append(x[i].mean() * boxes["b"][0])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="a number that is asked whether it is a tensor, for torch.jit.trace",
        source="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        times = 1 + 1 * (x.shape[0] > 1)
        if isinstance(times, torch.Tensor):
            times = times.item()
        return self.lin(x).repeat(times, 1)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = nn.Linear(4, 4)

    def forward(self, x):
        x = self.merger(x).relu() + x
        for block in self.blocks:
            x = block(x)
        return self.merger(x).tanh() * 2 + 1
""",
    ),
    NearMiss(
        title="a row that is gone through and written to, or that is looked at below; a counter that changes",
        source="""\
class Net(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        sizes = shapes.abs() + 1
        for i, size in enumerate(sizes):
            size += 1
            x = x + x.new_ones(3) * size.tolist()[0]
        return x


class Below(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        sizes = shapes.abs() + 1
        for i, size in enumerate(sizes):
            x = x + x.new_ones(3) * size.tolist()[0]
        return x + size.sum()


class Counted(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        sizes = shapes.abs() + 1
        for i, size in enumerate(sizes):
            i = 0
            x = x + x.new_ones(3) * size.tolist()[i]
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="reads above and below the loop: more graphs, not fewer",
        source="""\
class Batched(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        total = int(shapes.sum().item())
        widest = int(shapes.max().item())
        out = x.new_zeros(total, widest)
        for i in range(shapes.shape[0]):
            rows, turns = shapes[i].tolist()
            out[i, :rows] = turns
        return out[: int(shapes.min().item())]
""",
        reported=True,
    ),
    NearMiss(
        title="another loop that reads, and stays: all runs eagerly anyway",
        source="""\
class Above(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        for part in shapes.unbind():
            x = x + part.cumsum(0).tolist()[0]
        for i in range(shapes.shape[0]):
            rows, turns = shapes[i].tolist()
            x = x[:, :rows] * turns
        return x


class Below(nn.Module):
    def forward(self, x, shapes: torch.Tensor):
        for i in range(shapes.shape[0]):
            rows, turns = shapes[i].tolist()
            x = x[:, :rows] * turns
        for part in shapes.unbind():
            x = x + part.cumsum(0).tolist()[0]
        return x
""",
        reported=True,
    ),
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
    NearMiss(
        title="layers that read, but nothing around their loop would be joined by that",
        source="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        parts = torch.split(self.lin(x), lengths.tolist())
        return torch.cat([part - part.mean(0) for part in parts])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        for block in self.blocks:
            x = block(x, lengths)
        return self.merger(x)


class Guarded(Tower):
    def forward(self, x, lengths):
        x = self.norm(self.merger(x))
        with torch.no_grad():
            for block in self.blocks:
                x = block(x, lengths)
        return self.norm(self.merger(x))
""",
    ),
    NearMiss(
        title="layers that read in training only, and those that a decorator may replace",
        source="""\
import functools


def swapped(cls):
    cls.forward = functools.wraps(cls.forward)(lambda self, x, sizes: x)
    return cls


@swapped
class Expert(nn.Module):
    def forward(self, x, sizes: torch.Tensor):
        return torch.cat([part * 2 for part in x.split(sizes.tolist())])


class Dropped(nn.Module):
    def forward(self, x, sizes):
        if self.training:
            x = x * torch.rand([]).item()
        return x + sizes.sum()


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = Dropped(), Expert()
        self.experts = nn.ModuleList([Expert(), Expert()])
        self.drops = nn.ModuleList(Dropped() for _ in range(2))

    def forward(self, x, sizes):
        x = self.first(self.last(x, sizes), sizes)
        for expert in self.experts:
            x = expert(x, sizes)
        for drop in self.drops:
            x = drop(x, sizes)
        return self.first(self.last(x, sizes), sizes)
""",
    ),
    NearMiss(
        title="what cannot leave its function",
        source="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, lengths: torch.Tensor, joined=False):
        parts = torch.split(self.lin(x), lengths.tolist())
        return torch.cat([part - part.mean(0) for part in parts])


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Merger(nn.Module):
    def forward(self, x):
        return x.relu().sum(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.merger = Merger()

    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        for block in self.blocks:
            x = block(x, lengths)
            if x.shape[0] == 1:
                return x
        return self.merger(self.norm(x))


class Counted(Tower):
    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        for i, block in enumerate([Block()]):
            x = Block()(x, lengths)
        return self.merger(self.norm(x)) * i


class Seen(Tower):
    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        now = lambda: x
        for block in self.blocks:
            x = Block()(x, lengths)
        return self.merger(self.norm(now()))


class Named(Tower):
    def forward(self, x, lengths):
        x = self.merger(x) + self.norm(x * 2)
        for block in self.blocks:
            x = Block()(x, lengths)
        return self.merger(self.norm(locals()["x"]))
""",
        reported=True,
    ),
)
