"""What DataDependentBranch reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="two arms and a temporary, without gradients",
        before="""\
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 4
        self.register_buffer("frequencies", torch.linspace(1, 2, 3))

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        # stretch what is longer than what was trained on
        if end > self.longest:
            stretch = end / self.longest
            frequencies = self.frequencies / stretch
        else:
            frequencies = self.frequencies  # as trained
        return positions.unsqueeze(-1) * frequencies
""",
        after="""\
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 4
        self.register_buffer("frequencies", torch.linspace(1, 2, 3))

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        # stretch what is longer than what was trained on
        stretch = end / self.longest
        frequencies = torch.where(end > self.longest, self.frequencies / stretch, self.frequencies)  # as trained
        return positions.unsqueeze(-1) * frequencies
""",
        run="""\
def make(): return Angles()
calls = [(torch.arange(n),) for n in (3, 4, 5, 9)]
""",
    ),
    Example(
        title="one arm, and a Python flag that stays a test",
        before="""\
class Bounded(nn.Module):
    def forward(self, x):
        y = x * 2
        if self.training and not torch.isfinite(y).all():
            # leave some room
            top = torch.finfo(y.dtype).max - 1000
            y = torch.clamp(y, min=-top, max=top)
        return y + 1
""",
        after="""\
class Bounded(nn.Module):
    def forward(self, x):
        y = x * 2
        # leave some room
        if self.training:
            top = torch.finfo(y.dtype).max - 1000
            y = torch.where(torch.isfinite(y).all(), y, torch.clamp(y, min=-top, max=top))
        return y + 1
""",
        run="""\
def make(): return Bounded().train()
calls = [(torch.linspace(-1, 1, 6),), (torch.tensor([1.0, float("inf")]),)]
""",
    ),
    Example(
        title="a value that is set before",
        before="""\
class Shifted(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y + 1
        if x.sum() > 0:
            z = y - 1
        return z * y
""",
        after="""\
class Shifted(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y + 1
        z = torch.where(x.sum() > 0, y - 1, z)
        return z * y
""",
        run="""\
def make(): return Shifted()
calls = [(torch.ones(3, requires_grad=True),), (-torch.ones(3, requires_grad=True),)]
""",
    ),
    Example(
        title="two names: the condition is evaluated once",
        before="""\
class Edges(nn.Module):
    def forward(self, x):
        if (x > 2).any():
            low, high = x - 1, x + 1
        else:
            low = x
            high = x * 3
        return low * high
""",
        after="""\
class Edges(nn.Module):
    def forward(self, x):
        _condition = (x > 2).any()
        low = torch.where(_condition, x - 1, x)
        high = torch.where(_condition, x + 1, x * 3)
        return low * high
""",
        run="""\
def make(): return Edges()
calls = [(torch.linspace(-1, 1, 6).view(2, 3) * k,) for k in (1.0, 9.0)]
""",
    ),
    Example(
        title="early return, trained",
        before="""\
class Squash(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        if (h > 1).any() or (h < -1).any():
            return h.tanh()
        return h.sigmoid()
""",
        after="""\
class Squash(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        return torch.where((h > 1).any() | (h < -1).any(), h.tanh(), h.sigmoid())
""",
        run="""\
def make(): return Squash()
calls = [(torch.linspace(-1, 1, 8).view(2, 4) * k,) for k in (1.0, 9.0)]
train = True
""",
    ),
    Example(
        title="a counter in a buffer that is changed in place",
        before="""\
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        y = self.linear(x)
        self.steps += 1
        if self.steps > 2:
            y = y * 2
        return y
""",
        after="""\
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        y = self.linear(x)
        self.steps += 1
        y = torch.where((self.steps > 2).reshape(()), y * 2, y)
        return y
""",
        run="""\
def make(): return Warm()
calls = [(torch.linspace(-1, 1, 6) * k,) for k in (1.0, 2.0, 3.0, 4.0)]
""",
    ),
    Example(
        title="conditional expression; a threshold that may have a shape",
        before="""\
class Gate(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        scale = x * 2 if x.mean() > self.limit else x * 3
        return x + scale
""",
        after="""\
class Gate(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        scale = torch.where((x.mean() > self.limit).reshape(()), x * 2, x * 3)
        return x + scale
""",
        run="""\
def make(): return Gate(torch.tensor([1.0]))
calls = [(torch.linspace(-1, 1, 6) * k,) for k in (1.0,)] + [(torch.linspace(1, 2, 6),)]
""",
    ),
    Example(
        title="arms to which autocast gives two dtypes on a GPU",
        before="""\
class Scores(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            y = x.softmax(-1)
        else:
            y = x * 3
        return y + 1
""",
        after="""\
class Scores(nn.Module):
    def forward(self, x):
        y = torch.where(x.sum() > 3, x.softmax(-1), x * 3)
        return y + 1
""",
        run="""\
def make(): return Scores()
calls = [(torch.ones(2, 3),), (-torch.ones(2, 3),)]
""",
        unsafe=True,
    ),
    Example(
        title="an elif chain",
        before="""\
class Steps(nn.Module):
    def forward(self, x):
        size = x.abs().mean()
        if size > 2:
            y = x * 0.5
        elif size > 1:  # in between
            y = x - 1
        else:
            y = x + 1
        return y * 2
""",
        after="""\
class Steps(nn.Module):
    def forward(self, x):
        size = x.abs().mean()
        y = torch.where(size > 2, x * 0.5, torch.where(size > 1, x - 1, x + 1))  # in between
        return y * 2
""",
        run="""\
def make(): return Steps()
calls = [(torch.linspace(-1, 1, 6) * k,) for k in (1.0, 3.0, 9.0)]
""",
    ),
    Example(
        title="an elif whose test is only valid after the first one",
        before="""\
class Second(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        elif x[1].sum() < -2:
            y = x * 3
        else:
            y = x * 4
        return y + 1
""",
        after="""\
class Second(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = torch.where(x[1].sum() < -2, x * 3, x * 4)
        return y + 1
""",
        run="""\
def make(): return Second()
calls = [(torch.ones(1, 3),), (-torch.ones(4, 3),), (torch.tensor([[-3.0], [0.5]]),)]
""",
    ),
    Example(
        title="an elif below a test of Python",
        before="""\
class Modes(nn.Module):
    def forward(self, x, mode: str = "b"):
        y = x * 2
        if mode == "a":
            y = y + 1
        elif x.sum() > 0: y = y * 3
        return y - 1
""",
        after="""\
class Modes(nn.Module):
    def forward(self, x, mode: str = "b"):
        y = x * 2
        if mode == "a":
            y = y + 1
        else:
            y = torch.where(x.sum() > 0, y * 3, y)
        return y - 1
""",
        run="""\
def make(): return Modes()
calls = [(torch.ones(4, 3),), (-torch.ones(5, 3),), (torch.ones(5, 3), "a")]
""",
    ),
    Example(
        title="an elif on data with arms of other sizes",
        before="""\
class Net(nn.Module):
    def forward(self, x, mode: str = "b"):
        y = x * 2
        if mode == "a":
            y = y + 1
        elif x.sum() > 0:
            y = y[1:].contiguous()
        return y - 1
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.ones(4, 3),), (torch.ones(5, 3),)]
""",
    ),
    Example(
        title="a branch that only checks is reported",
        before="""\
class Checked(nn.Module):
    def forward(self, ids):
        if ids.max() > 9:
            raise ValueError("no such word")
        return ids + 1
""",
        after=None,
        run="""\
def make(): return Checked()
calls = [(torch.tensor([1, 2]),), (torch.tensor([1, 10]),)]
""",
    ),
    Example(
        title="a write that is skipped when there is nothing to write",
        before="""\
class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        blank = ids == 3
        if blank.any():  # most texts have none
            h[blank] = 0
        return h
""",
        after="""\
class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        blank = ids == 3
        if torch.compiler.is_compiling() or blank.any():  # most texts have none
            h[blank] = 0
        return h
""",
        unsafe=True,
        run="""\
def make(): return Blank()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
    ),
    Example(
        title="how many there are is counted behind the write; a loop goes on where there is nothing to write",
        before="""\
class Cleaned(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, ids):
        h = self.embed(ids)
        for i in range(2):
            blank = ids == i
            if blank.any():
                h[blank] = 0
                self.seen[i] += blank.sum()
        for i in range(3, 5):
            blank = ids == i
            if not blank.any():
                continue
            h[blank] = 1
        return h
""",
        after="""\
class Cleaned(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, ids):
        h = self.embed(ids)
        for i in range(2):
            blank = ids == i
            if torch.compiler.is_compiling() or blank.any():
                h[blank] = 0
                self.seen[i] += blank.sum()
        for i in range(3, 5):
            blank = ids == i
            if not torch.compiler.is_compiling() and not blank.any():
                continue
            h[blank] = 1
        return h
""",
        unsafe=True,
        run="""\
def make(): return Cleaned()
calls = [(torch.tensor([[1, 0, 3], [3, 5, 1]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[8, 8]]),)]
""",
    ),
    Example(
        title="a tensor that a later call gets, which is not read, and may write into it",
        unsafe=True,
        before="""\
class Probed(nn.Module):
    def __init__(self, probes):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.probes = probes

    def forward(self, x):
        a = self.line(x)
        if a.sum() > 0:
            h = torch.sin(a)
        else:
            h = torch.cos(a)
        for probe in self.probes:
            probe(a)
        return h.sum()
""",
        after="""\
class Probed(nn.Module):
    def __init__(self, probes):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.probes = probes

    def forward(self, x):
        a = self.line(x)
        h = torch.where(a.sum() > 0, torch.sin(a), torch.cos(a))
        for probe in self.probes:
            probe(a)
        return h.sum()
""",
        run="""\
def make(): return Probed(nn.ModuleList([nn.Identity(), nn.Linear(4, 4)]))
calls = [(torch.ones(2, 4),), (-torch.ones(2, 4),), (torch.linspace(-1, 1, 12).view(3, 4),)]
train = True
""",
    ),
    Example(
        title="what was given, which may be a leaf",
        before="""\
class Limit(nn.Module):
    def forward(self, scores):
        far = scores > 2
        if bool(far.any()):
            scores[far] = float("-inf")
        return scores.softmax(-1)
""",
        after="""\
class Limit(nn.Module):
    def forward(self, scores):
        far = scores > 2
        if torch.compiler.is_compiling() or bool(far.any()):
            scores[far] = float("-inf")
        return scores.softmax(-1)
""",
        run="""\
def make(): return Limit()
calls = [(torch.linspace(0, k, 6).view(2, 3),) for k in (1.0, 5.0)]
""",
        unsafe=True,
    ),
    Example(
        title="all are kept, or the others are filled in",
        before="""\
class Keep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, fill=True):
        h = self.embed(ids)
        keep = ids != 3
        if fill and not keep.all():
            h = h.masked_fill(~keep.unsqueeze(-1), 0.5)
        return h
""",
        after="""\
class Keep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, fill=True):
        h = self.embed(ids)
        keep = ids != 3
        if fill and (torch.compiler.is_compiling() or not keep.all()):
            h = h.masked_fill(~keep.unsqueeze(-1), 0.5)
        return h
""",
        unsafe=True,
        run="""\
def make(): return Keep()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
    ),
    Example(
        title="tokens for the places, which may be missing",
        before="""\
class Token(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, tokens):
        h = self.embed(ids)
        place = ids == 3
        if torch.any(place):
            h[place] = tokens[0].to(h.dtype)
        return h
""",
        after="""\
class Token(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, tokens):
        h = self.embed(ids)
        place = ids == 3
        if torch.compiler.is_compiling() or torch.any(place):
            h[place] = tokens[0].to(h.dtype)
        return h
""",
        run="""\
def make(): return Token()
tokens = [torch.linspace(0, 1, 4)]
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]), tokens), (torch.tensor([[1, 4]]), tokens)]
""",
        unsafe=True,
    ),
    Example(
        title="one of two tables of rates is registered, the long one is made when it is needed",
        before="""\
class Turning(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = 4
        self.register_buffer("rates", self.made(1), persistent=False)
        self.short_rates = self.rates

    def made(self, by):
        return 1.0 / (torch.arange(1, 4) * by).float()

    def choose(self, places, device):
        length = torch.max(places) + 1
        if length > self.trained:
            if not hasattr(self, "long_rates"):
                self.long_rates = self.made(by=8)
            self.register_buffer("rates", self.long_rates, persistent=False)
        else:
            # the module may have been moved
            self.short_rates = self.short_rates.to(device)
            self.register_buffer("rates", self.short_rates, persistent=False)

    @torch.no_grad()
    def forward(self, places):
        self.choose(places, places.device)
        return places.unsqueeze(-1) * self.rates
""",
        after="""\
class Turning(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = 4
        self.register_buffer("rates", self.made(1), persistent=False)
        self.short_rates = self.rates

    def made(self, by):
        return 1.0 / (torch.arange(1, 4) * by).float()

    def choose(self, places, device):
        length = torch.max(places) + 1
        # the module may have been moved
        if not hasattr(self, "long_rates"):
            self.long_rates = self.made(by=8)
        self.short_rates = self.short_rates.to(device)
        self.register_buffer(
            "rates",
            torch.where(length > self.trained, self.long_rates, self.short_rates),
            persistent=False,
        )

    @torch.no_grad()
    def forward(self, places):
        self.choose(places, places.device)
        return places.unsqueeze(-1) * self.rates
""",
        run="""\
def make(): return Turning()
calls = [(torch.arange(n),) for n in (3, 9, 4, 5)]
""",
        unsafe=True,
    ),
    Example(
        title="factors of the configuration, for short rows or long ones",
        before="""\
class Scaled(nn.Module):
    def __init__(self, long, short):
        super().__init__()
        self.long, self.short = long, short
        self.trained = 4
        self.rates = None

    @torch.no_grad()
    def forward(self, x, places):
        length = torch.max(places) + 1
        if length > self.trained:
            factors = torch.tensor(self.long, dtype=torch.float32, device=x.device)
        else:
            factors = torch.tensor(self.short, dtype=torch.float32, device=x.device)
        self.rates = 1.0 / (factors * torch.arange(1, 4, device=x.device).float())
        return x * (places.unsqueeze(-1).float() * self.rates)
""",
        after="""\
class Scaled(nn.Module):
    def __init__(self, long, short):
        super().__init__()
        self.long, self.short = long, short
        self.trained = 4
        self.rates = None

    @torch.no_grad()
    def forward(self, x, places):
        length = torch.max(places) + 1
        factors = torch.where(
            length > self.trained,
            torch.tensor(self.long, dtype=torch.float32, device=x.device),
            torch.tensor(self.short, dtype=torch.float32, device=x.device),
        )
        self.rates = 1.0 / (factors * torch.arange(1, 4, device=x.device).float())
        return x * (places.unsqueeze(-1).float() * self.rates)
""",
        run="""\
def make(): return Scaled([4.0, 5.0, 6.0], [1.0, 1.25, 1.5])
calls = [(torch.linspace(0, 1, 3), torch.arange(n)) for n in (3, 9, 4, 5)]
""",
        unsafe=True,
    ),
    Example(
        title="infinite values are clamped, in a function that hands on what it was given",
        before="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def settled(self, x):
        # half precision overflows
        if x.dtype == torch.float32 and torch.isinf(x).any():
            limit = torch.finfo(x.dtype).max - 1000
            x = torch.clamp(x, min=-limit, max=limit)
        return x

    def forward(self, x):
        return self.settled(self.lin(x))
""",
        after="""\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def settled(self, x):
        # half precision overflows
        if x.dtype == torch.float32:
            limit = torch.finfo(x.dtype).max - 1000
            x = torch.where(torch.isinf(x).any(), torch.clamp(x, min=-limit, max=limit), x)
        return x

    def forward(self, x):
        return self.settled(self.lin(x))
""",
        run="""\
def make(): return Block()
calls = [(torch.ones(2, 3),), (torch.full((2, 3), torch.inf),)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the arm that is not taken hands on its input",
        source="""\
class Passed(nn.Module):
    def forward(self, x):
        if x.abs().max() > 1:
            x = x / 2
        return x
""",
        reported=True,
        instead="torch.where",
    ),
    NearMiss(
        title="the tensor is handed on under another name",
        source="""\
class Twice(nn.Module):
    def forward(self, x):
        y = x * 1
        if y.abs().amax() > 3:
            z = y * 0.5
        else:
            z = y
        return z, y
""",
        reported=True,
        instead="torch.where",
    ),
    NearMiss(
        title="a module may give its input back",
        source="""\
class Same(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        y = x * 1
        z = self.drop(y)
        if y.abs().amax() > 3:
            y = y * 0.5
        return y, z
""",
        reported=True,
        instead="torch.where",
    ),
    NearMiss(
        title="what is chosen is made of the input's length",
        source="""\
class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = 4
        self.register_buffer("rates", self.made(4), persistent=False)
        self.short_rates = self.rates

    def made(self, length):
        return torch.arange(1, 4) / length

    def forward(self, places):
        length = torch.max(places) + 1
        if length > self.trained:
            self.register_buffer("rates", self.made(length), persistent=False)
        else:
            self.register_buffer("rates", self.short_rates, persistent=False)
        return places.unsqueeze(-1) * self.rates
""",
        reported=True,
    ),
    NearMiss(
        title="a number is changed along with the buffer",
        source="""\
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained, self.scale = 4, 1.0
        self.register_buffer("rates", torch.arange(1, 4) / 4, persistent=False)
        self.short_rates = self.rates

    def made(self, by):
        return torch.arange(1, 4) / by, 2.0

    def forward(self, places):
        if torch.max(places) > self.trained:
            if not hasattr(self, "long_rates"):
                self.long_rates, self.scale = self.made(9)
            self.register_buffer("rates", self.long_rates, persistent=False)
        else:
            self.register_buffer("rates", self.short_rates, persistent=False)
        return places.unsqueeze(-1) * self.rates * self.scale
""",
        reported=True,
    ),
    NearMiss(
        title="one arm goes on with what the other one moves",
        source="""\
class Moved(nn.Module):
    def __init__(self, rates, trained):
        super().__init__()
        self.trained = trained
        self.short_rates = rates
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, places):
        if torch.max(places) > self.trained:
            self.short_rates = self.short_rates.to(torch.float16)
            self.register_buffer("rates", self.short_rates, persistent=False)
        else:
            self.register_buffer("rates", self.short_rates, persistent=False)
        return places.unsqueeze(-1) * self.rates
""",
        reported=True,
    ),
    NearMiss(
        title="one is saved with the module, the other is not",
        source="""\
class Saved(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second
        self.register_buffer("rates", first)

    def forward(self, x):
        if x.sum() > 0:
            self.register_buffer("rates", self.first)
        else:
            self.register_buffer("rates", self.second, persistent=False)
        return x * self.rates
""",
        reported=True,
    ),
    NearMiss(
        title="numbers of the configuration",
        source="""\
class Numbers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def forward(self, x, places):
        if torch.max(places) > self.cfg.trained:
            scale = self.cfg.long_scale
        else:
            scale = self.cfg.short_scale
        return x * scale
""",
        reported=True,
    ),
    NearMiss(
        title="the number is read above: there the graph breaks",
        source="""\
class Net(nn.Module):
    def forward(self, x, mask):
        partial = not bool(mask.all())
        mask = mask if partial else None
        return x if mask is None else x * mask
""",
        reported=True,
    ),
    NearMiss(
        title="a side effect in the arm",
        source="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.hits = 0

    def forward(self, x):
        y = x
        if x.max() > 2:
            self.hits += 1
            y = x / 2
        return y, self.hits
""",
        reported=True,
    ),
    NearMiss(
        title="arms of two dtypes",
        source="""\
class Rounded(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            y = x.long()
        else:
            y = x
        return y + 1
""",
        reported=True,
    ),
    NearMiss(
        title="the condition has one element, but a shape",
        source="""\
class Shaped(nn.Module):
    def forward(self, x):
        m = x.max(dim=0, keepdim=True).values
        if m > 2:
            y = x.sum()
        else:
            y = x.mean()
        return y + 1
""",
        reported=True,
    ),
    NearMiss(
        title="Python numbers",
        source="""\
class Repeated(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            k = 2
        else:
            k = 1
        return x.repeat(k, 1)
""",
        reported=True,
    ),
    NearMiss(
        title="what an arm is an alias of changes before the last use",
        source="""\
class Later(nn.Module):
    def forward(self, x):
        if x.abs().amax() > 3:
            y = x * 0.5
        else:
            y = x
        x += 1
        return y * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a module may change its input in place",
        source="""\
class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        if x.abs().amax() > 3:
            x = x * 0.5
        return self.act(x)
""",
        reported=True,
    ),
    NearMiss(
        title="what is there is kept where gradients may be off",
        source="""\
class Frozen(nn.Module):
    def __init__(self, freeze=True):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.freeze = freeze

    def forward(self, x):
        h = self.lin(x)
        with torch.set_grad_enabled(not self.freeze):
            if h.abs().max() > 100:
                h = h * 0.5
        return h * 2
""",
        reported=True,
    ),
    NearMiss(
        title="an alias made without gradients is used with them",
        source="""\
class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            if x.sum() > 0:
                scale = self.scale * 2
            else:
                scale = self.scale
        return x * scale
""",
        reported=True,
    ),
    NearMiss(
        title="the Python part of the test has an effect, and two results need it",
        source="""\
class Ticks(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def tick(self):
        self.n += 1
        return True

    def forward(self, x):
        if self.tick() and x.sum() > 0:
            a = x * 2
            b = x * 3
        else:
            a = x * 4
            b = x * 5
        return a + b
""",
        reported=True,
    ),
    NearMiss(
        title="an in-place variant in the arm",
        source="""\
class Inplace(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            z = F.relu(y, inplace=True)
        else:
            z = y * 3
        return z + y
""",
        reported=True,
    ),
    NearMiss(
        title="a comparison with something that may be None gives a plain bool",
        source="""\
class Wanted(nn.Module):
    def forward(self, x, wanted=None):
        if x.sum() == wanted:
            y = x * 2
        else:
            y = x * 3
        return y + 1
""",
        reported=True,
    ),
    NearMiss(
        title="a parameter cannot be given a plain tensor",
        source="""\
class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 0:
            self.scale = self.scale * 0.5
        return x * self.scale
""",
        reported=True,
    ),
    NearMiss(
        title="a size that both names had, a turn of the loop ago",
        source="""\
class Grown(nn.Module):
    def forward(self, x):
        y, total = x * 1, 0 * x.sum()
        for i in range(4):
            old = y * 1
            if i % 2 == 1:
                y = torch.cat([y, y])
            if x.sum() > 0:
                z = old * 2
            else:
                z = y * 2
            total = total + z.sum()
        return total
""",
        reported=True,
    ),
    NearMiss(
        title="a test on the size is no test on data",
        source="""\
class Sized(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2 or x.dim() == 1:
            x = x * 2
        return x + 1
""",
    ),
    NearMiss(
        title="only eager code passes here",
        source="""\
class Guarded(nn.Module):
    def forward(self, x):
        y = x + 1
        if not torch.compiler.is_compiling():
            if y.max() > 2:
                y = y * 2
        return y
""",
    ),
    NearMiss(
        title="an index, not a mask",
        source="""\
class Index(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.any():
            h[place.long()] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="another mask than the one that is asked",
        source="""\
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.any():
            h[~place] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="all of them is another question than any",
        source="""\
class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.all():
            h[place] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="more than one is another question than any",
        source="""\
class More(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.sum() > 1:
            h[place] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="there is something to do when nothing is set",
        source="""\
class Else(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.any():
            h[place] = 0
        else:
            h[:, 0] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="a write that is not through the mask",
        source="""\
class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.any():
            h[place] = 0
            h[:, 0] = 1
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="a value that is work, or more",
        source="""\
class Work(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.count = 0

    def token(self):
        self.count += 1
        return torch.ones(4)

    def forward(self, ids):
        h = self.embed(ids)
        place = ids == 3
        if place.any():
            h[place] = self.token()
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="what is asked next would not have been asked",
        source="""\
class Next(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids, rest=None):
        h = self.embed(ids)
        place = ids == 3
        if place.any() and rest[0] > 1:
            h[place] = 0
        return h
""",
        reported=True,
    ),
    NearMiss(
        title="a message beside the choice",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        bad = torch.isnan(h)
        if bad.any():
            print("not a number")
            h = torch.where(bad, 0.0, h)
        return h + 1
""",
        reported=True,
    ),
    NearMiss(
        title="what is there is told to get a gradient, a new tensor is not",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    @torch.no_grad()
    def forward(self, ids):
        h = self.embed(ids)
        h.requires_grad_()
        some = ids > 3
        if some.any():
            h = torch.where(some.unsqueeze(-1), 0.0, h)
        return h
""",
        reported=True,
    ),
)
