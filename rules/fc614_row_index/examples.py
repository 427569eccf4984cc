"""What RowIndex reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_ROWS = "torch.linspace(-1, 1, 8).reshape(2, 4)"

INVALID: tuple[Example, ...] = (
    Example(
        title="the best row",
        before="""\
class Best(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)

    def forward(self, x):
        scores = self.lin(x).flatten()
        return x * 2 - x[scores.argmax()]
""",
        after="""\
class Best(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)

    def forward(self, x):
        scores = self.lin(x).flatten()
        return x * 2 - x[scores.argmax()[None]][0]
""",
        run=f"def make(): return Best()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="a table, in a loop over steps",
        before="""\
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("alphas", torch.linspace(0.1, 1.0, 8))

    def forward(self, x):
        steps = torch.arange(3, device=x.device)
        for t in steps:
            x = x.sin() * self.alphas[t] - self.alphas[t + 1]
        return x
""",
        after="""\
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("alphas", torch.linspace(0.1, 1.0, 8))

    def forward(self, x):
        steps = torch.arange(3, device=x.device)
        for t in steps:
            x = x.sin() * self.alphas[t[None]][0] - self.alphas[(t + 1)[None]][0]
        return x
""",
        run=f"def make(): return Sampler()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
    Example(
        title="a column, behind a slice, and one place of a row",
        before="""\
class Column(nn.Module):
    def forward(self, x):
        widest = x.sum(0).argmax()
        return -x[:, widest] + x[0, widest] * x[1, widest].tanh()
""",
        after="""\
class Column(nn.Module):
    def forward(self, x):
        widest = x.sum(0).argmax()
        return -x[:, widest[None]].squeeze(1) + x[0, widest[None]][0] * x[1, widest[None]][0].tanh()
""",
        run=f"def make(): return Column()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="both numbers are in tensors",
        before="""\
class Corner(nn.Module):
    def forward(self, x):
        row, column = x.sum(1).argmax(), x.sum(0).argmin()
        return x / (1 + x[row, column] ** 2)
""",
        after="""\
class Corner(nn.Module):
    def forward(self, x):
        row, column = x.sum(1).argmax(), x.sum(0).argmin()
        return x / (1 + x[row[None], column[None]][0] ** 2)
""",
        run=f"def make(): return Corner()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="a number that is written",
        before="""\
class Marked(nn.Module):
    def forward(self, x):
        x = x * 2
        x[1, x.sum(0).argmax()] = 0.5
        return x + 1
""",
        after="""\
class Marked(nn.Module):
    def forward(self, x):
        x = x * 2
        x[1, x.sum(0).argmax()[None]] = 0.5
        return x + 1
""",
        run=f"def make(): return Marked()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="what picks may be on another device",
        before="""\
class Moved(nn.Module):
    def forward(self, x):
        best = x.sum(1).argmax()
        x = x.cpu()
        return x + x[best]
""",
        after="""\
class Moved(nn.Module):
    def forward(self, x):
        best = x.sum(1).argmax()
        x = x.cpu()
        return x + x[best[None]][0]
""",
        run=f"def make(): return Moved()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
    Example(
        title="a chain, each link of which has a parent",
        before="""\
class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ups", torch.tensor([-1, 0, 0, 1]))

    def forward(self, turns):
        chain = [turns[0]]
        for i in range(1, 4):
            link = chain[self.ups[i]]
            chain.append(link @ turns[i])
        return torch.stack(chain)
""",
        after="""\
class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ups", torch.tensor([-1, 0, 0, 1]))

    def forward(self, turns):
        chain = [turns[0]]
        for i in range(1, 4):
            link = torch.stack(chain)[self.ups[i][None]][0] if torch.compiler.is_compiling() else chain[self.ups[i]]
            chain.append(link @ turns[i])
        return torch.stack(chain)
""",
        run="def make(): return Chain()\ncalls = [(torch.linspace(-1, 1, 36).view(4, 3, 3),)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="a row that is handed on",
        before="""\
class Handed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        best = x[x.sum(1).argmax()]
        return self.lin(best)
""",
        after="""\
class Handed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        best = x[x.sum(1).argmax()[None]][0]
        return self.lin(best)
""",
        run=f"def make(): return Handed()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a number that is read from the row at once",
        source="""\
class Net(nn.Module):
    def forward(self, x: torch.Tensor, scores: torch.Tensor):
        i = scores.argmax()
        return x[scores.argmax()].item(), int(x[i]), x[i].tolist()
""",
    ),
    NearMiss(
        title="what a dictionary holds for a tensor that is a key",
        source="""\
class Net(nn.Module):
    def forward(self, said: dict[str, torch.Tensor], counts: torch.Tensor):
        total = 0
        for n in counts:
            total = total + said[n]
        return total
""",
    ),
    NearMiss(
        title="numbers of the host",
        source="""\
class Net(nn.Module):
    def forward(self, x, n: int = 1):
        return x[n] * x[0, n] + x[n - 1]
""",
    ),
    NearMiss(
        title="a tensor that comes in as it is",
        source="""\
class Net(nn.Module):
    def forward(self, x, t):
        return x * t.float() + x[t]
""",
    ),
    NearMiss(
        title="a mask of one place",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x[x.sum() > 0] * 2
""",
        reported=True,
    ),
    NearMiss(
        title="rows by a mask each",
        source="""\
class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        masks = lengths[:, None] > torch.arange(4)
        return torch.stack([row[mask].sum() for row, mask in zip(x, masks)]) * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a list of modules, of which it is the place",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        names = ["first", "second"]
        return self.nets[x.sum(1).argmax()](x) * len(names[x.sum(1).argmin()])
""",
        reported=True,
    ),
    NearMiss(
        title="many rows",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x[x.sum(1).argsort()] * 2
""",
    ),
    NearMiss(
        title="a new dimension beside it",
        source="""\
class Net(nn.Module):
    def forward(self, x, rows):
        return x[x.sum(1).argmax(), rows] * 2
""",
        reported=True,
    ),
    NearMiss(
        title="in eager code",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * 2


def best(x):
    return x[x.sum(1).argmax()] * 2
""",
    ),
    NearMiss(
        title="masks, of one number each",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        n = x.sum(1).argmax()
        return x[n.to(torch.uint8)] * 2 + x[n.bool()].sum()
""",
        reported=True,
    ),
)
