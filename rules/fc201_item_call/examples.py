"""What ItemCall reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a width that passes through a tensor to a function, in a loop",
        before="""\
def gated(a, b, width):
    both = a + b
    return torch.tanh(both[:, :width]) * torch.sigmoid(both[:, width:])


class Wave(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config.width
        self.layers = nn.ModuleList([nn.Linear(config.width, 2 * config.width) for _ in range(3)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + gated(h, h, width[0])
        return x
""",
        after="""\
def gated(a, b, width):
    both = a + b
    return torch.tanh(both[:, :width]) * torch.sigmoid(both[:, width:])


class Wave(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config.width
        self.layers = nn.ModuleList([nn.Linear(config.width, 2 * config.width) for _ in range(3)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + gated(h, h, int(self.width))
        return x
""",
        run="""\
class Config: width = 4
def make(): return Wave(Config())
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
        unsafe=True,
    ),
    Example(
        title="a size, halved in a tensor",
        unsafe=True,
        before="""\
class Halves(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1] // 2)
        return x[:, : n.item()] - x[:, int(n) :]
""",
        after="""\
class Halves(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1] // 2)
        return x[:, : x.shape[1] // 2] - x[:, x.shape[1] // 2 :]
""",
        run="""\
def make(): return Halves()
calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (4, 6)]
""",
    ),
    Example(
        title="the product and the largest of sizes",
        unsafe=True,
        before="""\
class Flat(nn.Module):
    def forward(self, x, y):
        count = torch.tensor(x.shape, dtype=torch.long).prod().item()
        longest = torch.max(torch.tensor([x.shape[0], y.shape[0]])).item()
        return x.reshape(count).sum() + y[:longest]
""",
        after="""\
class Flat(nn.Module):
    def forward(self, x, y):
        count = x.shape.numel()
        longest = max(x.shape[0], y.shape[0])
        return x.reshape(count).sum() + y[:longest]
""",
        run="""\
def make(): return Flat()
calls = [(torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(-1, 1, 4))]
""",
    ),
    Example(
        title="the product of the sizes of what has a dimension, for one was asked for above",
        unsafe=True,
        before="""\
class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, input):
        width = input.shape[2]
        share = torch.prod(torch.tensor(input.shape)).item() * 2 / 1024
        return self.lin(input) * (int(share / 2) + width)
""",
        after="""\
class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, input):
        width = input.shape[2]
        share = input.shape.numel() * 2 / 1024
        return self.lin(input) * (int(share / 2) + width)
""",
        run="""\
def make(): return Parts()
calls = [(torch.linspace(-1, 1, 24).reshape(2, 3, 4),)]
""",
    ),
    Example(
        title="the largest of sizes that are listed right above",
        unsafe=True,
        before="""\
class Joined(nn.Module):
    def forward(self, x):
        parts = [u.flatten(1) for u in x]
        lengths = torch.tensor([u.size(1) for u in parts])
        width = lengths.max().item()
        return torch.cat([torch.cat([u, u.new_zeros(1, width - u.size(1))], dim=1) for u in parts]), lengths
""",
        after="""\
class Joined(nn.Module):
    def forward(self, x):
        parts = [u.flatten(1) for u in x]
        lengths = torch.tensor([u.size(1) for u in parts])
        width = max(u.size(1) for u in parts)
        return torch.cat([torch.cat([u, u.new_zeros(1, width - u.size(1))], dim=1) for u in parts]), lengths
""",
        run="""\
def make(): return Joined()
calls = [([torch.ones(1, 2, 3), torch.ones(1, 4)],)]
""",
    ),
    Example(
        title="the largest of sizes in a list that a loop has filled",
        unsafe=True,
        before="""\
class Packed(nn.Module):
    def forward(self, groups):
        rows = []
        for group in groups:
            rows.append(torch.cat([u.flatten(0, -2) for u in group]))
        lengths = torch.tensor([u.shape[-2] for u in rows], device=rows[0].device, dtype=torch.long)
        places = torch.arange(lengths.amax().item())
        return places[None] < lengths[:, None], rows
""",
        after="""\
class Packed(nn.Module):
    def forward(self, groups):
        rows = []
        for group in groups:
            rows.append(torch.cat([u.flatten(0, -2) for u in group]))
        lengths = torch.tensor([u.shape[-2] for u in rows], device=rows[0].device, dtype=torch.long)
        places = torch.arange(max(u.shape[-2] for u in rows))
        return places[None] < lengths[:, None], rows
""",
        run="""\
def make(): return Packed()
calls = [([[torch.ones(n, 2, 3), torch.ones(4, 3)], [torch.ones(2, 3)]],) for n in (1, 2)]
""",
    ),
    Example(
        title="a number that only the data knows is reported",
        before="""\
class Longest(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        steps = torch.arange(lengths.max().item())
        return x[:, steps]
""",
        after=None,
        run="""\
def make(): return Longest()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4), torch.tensor([2, 3]))]
""",
    ),
    Example(
        title="bounds of slices in arrays",
        before="""\
import numpy as np


class Columns(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        found = []
        for name in self.columns:
            where = np.array(self.columns[name])
            found.append(self.lin(x[:, where[0] : where[-1]]))
        return torch.cat(found, -1)
""",
        after="""\
import numpy as np


class Columns(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        found = []
        for name in self.columns:
            where = self.columns[name]
            found.append(self.lin(x[:, where[0] : where[-1]]))
        return torch.cat(found, -1)
""",
        run="""\
def make(): return Columns({"age": (0, 2), "sex": (2, 4), "size": [4, 6]})
calls = [(torch.linspace(-1, 1, 12).reshape(2, 6),)]
""",
        unsafe=True,
    ),
    Example(
        title="bounds that are written out in an array",
        before="""\
import numpy


class Cut(nn.Module):
    def cut(self, x, lower, upper):
        bounds = numpy.asarray([lower, upper])
        return x[bounds[0] : bounds[1]] + 1

    def forward(self, x):
        return self.cut(x, 1, 3)
""",
        after="""\
import numpy


class Cut(nn.Module):
    def cut(self, x, lower, upper):
        bounds = [lower, upper]
        return x[bounds[0] : bounds[1]] + 1

    def forward(self, x):
        return self.cut(x, 1, 3)
""",
        run="""\
def make(): return Cut()
calls = [(torch.linspace(-1, 1, 6),)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the tensor is changed after it was made",
        source="""\
class Changed(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1])
        n -= 1
        return x[:, : n.item()]
""",
        reported=True,
    ),
    NearMiss(
        title="the tensor is changed through an element",
        source="""\
class Element(nn.Module):
    def forward(self, x):
        n = torch.tensor([x.shape[1]])
        first = n[0]
        first -= 1
        return x[:, : n.item()]
""",
        reported=True,
    ),
    NearMiss(
        title="made in the turn of the loop before",
        source="""\
class Before(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1])
        for i in range(3):
            x = x * n.item()
            n = torch.tensor(i)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="what it was made of is another number now",
        source="""\
class Moved(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1])
        x = x[:, 1:]
        return x * n.item()
""",
        reported=True,
    ),
    NearMiss(
        title="the number is returned as well",
        source="""\
class Told(nn.Module):
    def forward(self, x):
        top = x.max().item()
        return x - top, top
""",
        reported=True,
    ),
    NearMiss(
        title="one element, but a shape",
        source="""\
class Kept(nn.Module):
    def forward(self, x):
        return x.reshape(-1) - x.mean(dim=(0, 1), keepdim=True).item()
""",
        reported=True,
    ),
    NearMiss(
        title="a float in an integer tensor",
        source="""\
class Cut(nn.Module):
    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, x):
        n = torch.tensor(x.shape[1] * self.share)
        return x * n.item()
""",
        reported=True,
    ),
    NearMiss(
        title="a list that a loop has filled: longer by now, and the largest along a dimension",
        source="""\
class Filled(nn.Module):
    def forward(self, groups):
        rows = []
        for group in groups:
            rows.append(torch.cat(group))
        lengths = torch.tensor([u.shape[-2] for u in rows])
        rows.append(groups[0][0])
        places = torch.arange(lengths.amax().item())
        lengths = torch.tensor([u.shape[-2] for u in rows])
        return places, torch.arange(lengths.amax(0).item())
""",
        reported=True,
    ),
    NearMiss(
        title="listed sizes: of an iterator, further above, under a condition",
        source="""\
class Once(nn.Module):
    def forward(self, x):
        parts = (u.flatten(1) for u in x)
        lengths = torch.tensor([u.size(1) for u in parts])
        return x[0][: lengths.max().item()]


class Longer(nn.Module):
    def forward(self, x):
        parts = [u.flatten(1) for u in x]
        lengths = torch.tensor([u.size(1) for u in parts])
        parts.append(x[0])
        return x[0][: lengths.max().item()]


class Some(nn.Module):
    def forward(self, x):
        parts = [u.flatten(1) for u in x]
        lengths = torch.tensor([u.size(1) for u in parts if u.size(1) > 2])
        return x[0][: lengths.max().item()]
""",
        reported=True,
    ),
    NearMiss(
        title="`max` is another name",
        source="""\
class Named(nn.Module):
    def forward(self, x, max):
        return x[: torch.tensor([x.shape[0], 2]).max().item()] + max
""",
        reported=True,
    ),
    NearMiss(
        title="numbers of Python and of numpy",
        source="""\
class Plain(nn.Module):
    def forward(self, x):
        return x[:, : int(x.shape[1] / 2)] * float(x.dim())
""",
    ),
    NearMiss(
        title="arrays that are computed with, indexed by, of floats, or read where a slice is not",
        source="""\
import numpy as np


class Arrays(nn.Module):
    def forward(self, x, pairs):
        a = np.array(pairs)
        b = np.array(pairs, dtype=np.int32)
        c = np.array(pairs)
        d = np.array(pairs)
        e = np.array(p for p in pairs)
        c = c + 1
        n = 0
        return x[a[0] : a[1]] * a.sum() + x[b[0] :] + x[c[0] :] + x[d[n] :] + x[e[0] :] + d[1]
""",
    ),
)
