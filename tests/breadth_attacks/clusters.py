"""Reads that are moved into a function of their own, and chunks of sizes that a tensor holds."""

from __future__ import annotations

MADE = "def make(): return Net()\n"
PAIRS = MADE + "calls = [(torch.ones(2, 3), torch.tensor(m)) for m in ([[1, 2], [3, 4]], [[2, 2], [3, 1], [4, 4]])]"
SIZES = """
def make(): return Net()
calls = [
    (torch.arange(12.0).view(-1, 2)[:n], torch.tensor(i))
    for n, i in ((3, [[1, 2, 0], [0, 0, 4]]), (5, [[1, 2, 0], [1, 2, 3]]), (4, [[1, 2, 3], [1, 2, 3]]))
]
"""


def net(index: str) -> str:
    """A module whose ``forward`` calls the method ``idx`` that is given."""
    return f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
{index}
    def forward(self, x, m):
        h = self.lin(x)
        i = self.idx(m)
        return h.relu() * 2 + i.sum()
"""


def split(body: str) -> str:
    """A module that may split ``x`` by ``counts``."""
    return f"""
class Net(nn.Module):
    def forward(self, x, ids: torch.LongTensor, p=None):
        counts = (ids != 0).sum(1)
        {body}
"""


ATTACKS: dict[str, tuple[str, str, str]] = {
    "a class and its subclass are both taken apart": (
        "FC204",
        net("""
    def idx(self, m, ready=None):
        if ready is not None:
            return ready
        out = []
        for i in m:
            out.append(torch.arange(i.sum().item()))
        return torch.cat(out)
""")
        + """

class Sub(Net):
    def idx(self, m, ready=None):
        if ready is not None:
            return ready
        out = [super().idx(m)]
        for i in m:
            out.append(torch.arange(i.sum().item()) * 100)
        return torch.cat(out)
""",
        PAIRS.replace("Net()", "Sub()"),
    ),
    "names that come back, and one that is an argument": (
        "FC204",
        net("""
    def idx(self, m):
        x = self.lin(torch.ones(3)).sum()
        total = 0
        for r in m:
            self.last = r.sum().item()
            total = total + self.last
            m = m + 1
        return self.lin(torch.ones(3)) * total + x + self.last + m.sum()
"""),
        PAIRS,
    ),
    "in place, on what has another name": (
        "FC204",
        net("""
    def idx(self, m):
        h = self.lin(torch.ones(6, 3))
        keep = h
        for r in m:
            a, b = r.tolist()
            h += a
            h[0] *= b
        return self.lin(h) + keep.sum()
"""),
        PAIRS,
    ),
    "an error half way": (
        "FC204",
        net("""
    def idx(self, m):
        out = []
        try:
            return self.rows(m, out)
        except IndexError:
            return torch.tensor(out)

    def rows(self, m, out):
        for r in m:
            for n in r.tolist():
                out.append(n)
                m[n]
        return torch.cat(out)
"""),
        PAIRS,
    ),
    "private names, and super": (
        "FC204",
        net("""
    def idx(self, m):
        return self.__rows(m)

    def __rows(self, m, ready=None):
        if ready is not None:
            return ready
        out = [len(super().__repr__())]
        self.__seen = 0
        for i in m:
            self.__seen += i.sum().item()
            out.append(self.__seen)
        return torch.tensor(out)
"""),
        PAIRS,
    ),
    "a name that is bound in the same line": (
        "FC202",
        split("return [x := x[:3], torch.cat(x.split(counts.tolist()))]"),
        SIZES,
    ),
    "another zip": (
        "FC605",
        """
def zip(*lists):
    return [tuple(one[-i] for one in lists) for i in range(1, len(lists[0]) + 1)]


class Net(nn.Module):
    def forward(self, q, k, v, lengths):
        splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
        outs = [F.scaled_dot_product_attention(a, b, c) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)
""",
        MADE + "q = torch.linspace(-1, 1, 40).view(1, 2, 5, 4)\ncalls = [(q, q.cos(), q.sin(), torch.tensor([2, 3]))]",
    ),
}
