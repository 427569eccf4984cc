"""What ProgressBar reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_ROWS = "torch.linspace(-1, 1, 8).reshape(2, 4)"

INVALID: tuple[Example, ...] = (
    Example(
        title="a sampler",
        before="""\
from tqdm.auto import tqdm


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.steps = 3

    def forward(self, x):
        for t in tqdm(range(self.steps), disable=True):
            x = x + self.lin(x) / (t + 1)
        return x
""",
        after="""\
from tqdm.auto import tqdm


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.steps = 3

    def forward(self, x):
        for t in (range(self.steps) if torch.compiler.is_compiling() else tqdm(range(self.steps), disable=True)):
            x = x + self.lin(x) / (t + 1)
        return x
""",
        run=f"def make(): return Sampler()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="pairs that are worked out first",
        before="""\
from tqdm import tqdm


class Sampler(nn.Module):
    def forward(self, x):
        times, rest = [3, 2, 1], [2, 1, 0]
        for a, b in tqdm(zip(times, rest), disable=True):
            x = x.sin() * a + b
        return x
""",
        after="""\
from tqdm import tqdm


class Sampler(nn.Module):
    def forward(self, x):
        times, rest = [3, 2, 1], [2, 1, 0]
        for a, b in (zip(times, rest) if torch.compiler.is_compiling() else tqdm(zip(times, rest), disable=True)):
            x = x.sin() * a + b
        return x
""",
        run=f"def make(): return Sampler()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="a range with a bar, counted down",
        before="""\
import tqdm


class Sampler(nn.Module):
    def forward(self, x, steps: int = 3):
        for t in tqdm.trange(steps, 0, -1, disable=True):
            x = x.cos() + t
        return x
""",
        after="""\
import tqdm


class Sampler(nn.Module):
    def forward(self, x, steps: int = 3):
        for t in (range(steps, 0, -1) if torch.compiler.is_compiling() else tqdm.trange(steps, 0, -1, disable=True)):
            x = x.cos() + t
        return x
""",
        run=f"def make(): return Sampler()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="numbered, and in a comprehension",
        before="""\
from tqdm import tqdm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        for n, net in enumerate(tqdm(self.nets)):
            x = net(x) * (n + 1)
        return torch.stack([x * k for k in tqdm(range(2), disable=True)])
""",
        after="""\
from tqdm import tqdm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        for n, net in enumerate(self.nets if torch.compiler.is_compiling() else tqdm(self.nets)):
            x = net(x) * (n + 1)
        return torch.stack(
            [x * k for k in (range(2) if torch.compiler.is_compiling() else tqdm(range(2), disable=True))],
        )
""",
        run=f"def make(): return Net()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="a bar that is told something",
        before="""\
from tqdm import tqdm


class Solver(nn.Module):
    def forward(self, x):
        bar = tqdm(range(3), disable=True)
        for _ in bar:
            x = x - 0.1 * x.pow(3)
            bar.set_postfix(loss=f"{x.abs().mean().item():.3f}")
        bar.close()
        return x
""",
        after="""\
from tqdm import tqdm


class Solver(nn.Module):
    def forward(self, x):
        bar = range(3) if torch.compiler.is_compiling() else tqdm(range(3), disable=True)
        for _ in bar:
            x = x - 0.1 * x.pow(3)
            if isinstance(bar, tqdm):
                bar.set_postfix(loss=f"{x.abs().mean().item():.3f}")
        if isinstance(bar, tqdm):
            bar.close()
        return x
""",
        run=f"def make(): return Solver()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="the items by their name",
        before="""\
from tqdm import tqdm


class Sampler(nn.Module):
    def forward(self, x, shown: bool = False):
        scales = x.unbind(0)
        for scale in tqdm(iterable=scales, disable=not shown):
            x = x * scale
        return x
""",
        after="""\
from tqdm import tqdm


class Sampler(nn.Module):
    def forward(self, x, shown: bool = False):
        scales = x.unbind(0)
        for scale in (scales if torch.compiler.is_compiling() else tqdm(iterable=scales, disable=not shown)):
            x = x * scale
        return x
""",
        run=f"def make(): return Sampler()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="what compiled code has begun runs on in eager code",
        before="""\
import tqdm


def settled(x):
    torch._dynamo.graph_break()
    return x.shape[0] > 2


class Solver(nn.Module):
    def forward(self, x):
        bar = tqdm.trange(3, disable=True)
        settled(x.cos())
        for _ in bar:
            x = x - 0.1 * x.pow(3)
            if settled(x):
                break
            bar.set_description("not yet")
        return x
""",
        after="""\
import tqdm


def settled(x):
    torch._dynamo.graph_break()
    return x.shape[0] > 2


class Solver(nn.Module):
    def forward(self, x):
        bar = range(3) if torch.compiler.is_compiling() else tqdm.trange(3, disable=True)
        settled(x.cos())
        for _ in bar:
            x = x - 0.1 * x.pow(3)
            if settled(x):
                break
            if isinstance(bar, tqdm.tqdm):
                bar.set_description("not yet")
        return x
""",
        run=f"def make(): return Solver()\ncalls = [({_ROWS},)]\n",
        gain=False,  # the loop breaks, of which facts know nothing
    ),
    Example(
        title="told something behind a colon",
        before="""\
from tqdm import tqdm


class Solver(nn.Module):
    def forward(self, x, shown: bool = True):
        bar = tqdm(list(range(3)), desc="down", disable=True)
        for _ in bar:
            if shown: bar.update(0)
            x = x - 0.1 * x.pow(3)
        return x
""",
        after="""\
from tqdm import tqdm


class Solver(nn.Module):
    def forward(self, x, shown: bool = True):
        bar = list(range(3)) if torch.compiler.is_compiling() else tqdm(list(range(3)), desc="down", disable=True)
        for _ in bar:
            if shown:
                if isinstance(bar, tqdm):
                    bar.update(0)
            x = x - 0.1 * x.pow(3)
        return x
""",
        run=f"def make(): return Solver()\ncalls = [({_ROWS},)]\n",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the bar is asked how far it is",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        bar = tqdm(range(3))
        for _ in bar:
            x = x * bar.n
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="the bar is handed on",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x, solve):
        return solve(x, tqdm(range(3)))
""",
        reported=True,
    ),
    NearMiss(
        title="held in a with, and told each step",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        with tqdm(total=3) as bar:
            for _ in range(3):
                x = x * 2
                bar.update(1)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="its text is drawn",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x, words):
        for word in tqdm(range(3), desc=words.pop()):
            x = x * word
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="what a step tells it is computed in the call",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        bar = tqdm(range(3))
        for _ in bar:
            bar.set_description(str(x.mul_(2).sum()))
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="a loop in eager code",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        return x * 2


def train(net, loader):
    for x in tqdm(loader):
        net(x)
""",
    ),
    NearMiss(
        title="compiled code has none",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        for n in (range(3) if torch.compiler.is_compiling() else tqdm(range(3))):
            x = x * n
        return x
""",
    ),
    NearMiss(
        title="a function of the project",
        source="""\
def tqdm(items):
    return [item * 2 for item in items]


class Net(nn.Module):
    def forward(self, x):
        for n in tqdm(range(3)):
            x = x * n
        return x
""",
    ),
    NearMiss(
        title="`range` is another function",
        source="""\
from tqdm import trange


def range(n):
    return [n]


class Net(nn.Module):
    def forward(self, x):
        for n in trange(3):
            x = x * n
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="what it goes through comes with a star",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x, *given):
        for n in tqdm(*given):
            x = x * n
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="a generator in the brackets of the call",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        for y in tqdm(x * k for k in range(3)):
            x = x + y
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="a bar around another one",
        source="""\
from tqdm import tqdm


class Net(nn.Module):
    def forward(self, x):
        for t in tqdm(tqdm(range(3))):
            x = x + t
        return x
""",
        reported=True,
    ),
)
