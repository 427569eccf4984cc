"""What BufferReassignedInForward reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a table that is moved to where the input is",
        before="""\
class Positions(nn.Module):
    def __init__(self, n: int, width: int):
        super().__init__()
        self.table = nn.Buffer(torch.arange(n * width).reshape(n, width).float(), persistent=False)

    def forward(self, x):
        # the table may be elsewhere
        self.table = self.table.to(device=x.device, dtype=x.dtype)
        return x + self.table[: x.shape[1]]
""",
        after="""\
class Positions(nn.Module):
    def __init__(self, n: int, width: int):
        super().__init__()
        self.table = nn.Buffer(torch.arange(n * width).reshape(n, width).float(), persistent=False)

    def forward(self, x):
        # the table may be elsewhere
        new_table = self.table.to(device=x.device, dtype=x.dtype)
        if new_table is not self.table:
            self.table = new_table
        return x + self.table[: x.shape[1]]
""",
        run="""\
def make(): return Positions(8, 3)
calls = [(torch.linspace(-1, 1, 12).reshape(2, 2, 3),), (torch.linspace(-1, 1, 12).reshape(2, 2, 3).double(),)]
""",
    ),
    Example(
        title="a counter",
        unsafe=True,
        before="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        return x * self.steps
""",
        after="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        new_steps = self.steps
        new_steps += 1
        if new_steps is not self.steps:
            self.steps = new_steps
        return x * self.steps
""",
        run="""\
def make(): return Counted()
calls = [(torch.ones(2),), (torch.ones(2),)]
""",
    ),
    Example(
        title="a running mean, changed under a name of its own",
        before="""\
class Running(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(width))

    @torch.no_grad()
    def forward(self, x):
        mean = self.mean
        mean *= 0.9
        mean += x.mean(0) * 0.1
        self.mean = mean
        return x - self.mean
""",
        after="""\
class Running(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(width))

    @torch.no_grad()
    def forward(self, x):
        mean = self.mean
        mean *= 0.9
        mean += x.mean(0) * 0.1
        if mean is not self.mean:
            self.mean = mean
        return x - self.mean
""",
        run="""\
def make(): return Running(3)
calls = [(torch.linspace(-1, 1, 6).reshape(2, 3),), (torch.linspace(-1, 2, 6).reshape(2, 3),)]
""",
    ),
    Example(
        title="what an in-place method returns",
        before="""\
class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Buffer(torch.tensor(4.0))

    def forward(self, x):
        self.scale = self.scale.mul_(0.5).clamp_(min=0.1)
        return x * self.scale
""",
        after="""\
class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Buffer(torch.tensor(4.0))

    def forward(self, x):
        new_scale = self.scale.mul_(0.5).clamp_(min=0.1)
        if new_scale is not self.scale:
            self.scale = new_scale
        return x * self.scale
""",
        run="""\
def make(): return Clamped()
calls = [(torch.ones(2),), (torch.ones(2),)]
""",
    ),
    Example(
        title="a buffer of a base class, an operand that may be anything",
        unsafe=True,
        before="""\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = nn.Buffer(torch.zeros(3))


class Summed(Base):
    def forward(self, x, weight=None):
        self.total += x.sum(0) if weight is None else weight
        return x + self.total
""",
        after="""\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = nn.Buffer(torch.zeros(3))


class Summed(Base):
    def forward(self, x, weight=None):
        new_total = self.total
        new_total += (x.sum(0) if weight is None else weight)
        if new_total is not self.total:
            self.total = new_total
        return x + self.total
""",
        run="""\
def make(): return Summed()
calls = [(torch.ones(2, 3),), (torch.ones(2, 3), 2)]
""",
    ),
    Example(
        title="only while training, in a method of its own",
        before="""\
class Usage(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.usage = nn.Buffer(torch.zeros(n))

    def _note(self, ids):
        if self.training:
            self.usage = self.usage.index_add_(0, ids, torch.ones(ids.shape[0])).contiguous()

    def forward(self, ids):
        self._note(ids)
        return self.usage[ids] * 2
""",
        after="""\
class Usage(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.usage = nn.Buffer(torch.zeros(n))

    def _note(self, ids):
        if self.training:
            new_usage = self.usage.index_add_(0, ids, torch.ones(ids.shape[0])).contiguous()
            if new_usage is not self.usage:
                self.usage = new_usage

    def forward(self, ids):
        self._note(ids)
        return self.usage[ids] * 2
""",
        run="""\
def make(): return Usage(4)
calls = [(torch.tensor([0, 2]),), (torch.tensor([2, 3]),)]
""",
    ),
    Example(
        title="a number in other instances",
        unsafe=True,
        before="""\
class Either(nn.Module):
    def __init__(self, saved: bool):
        super().__init__()
        if saved:
            self.steps = nn.Buffer(torch.tensor(0))
        else:
            self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * self.steps
""",
        after="""\
class Either(nn.Module):
    def __init__(self, saved: bool):
        super().__init__()
        if saved:
            self.steps = nn.Buffer(torch.tensor(0))
        else:
            self.steps = 0

    def forward(self, x):
        new_steps = self.steps
        new_steps += 1
        if new_steps is not self.steps:
            self.steps = new_steps
        return x * self.steps
""",
        run="""\
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Either(True), Either(False)

    def forward(self, x):
        return self.a(x), self.b(x)

def make(): return Both()
calls = [(torch.ones(2),), (torch.ones(2),)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a new tensor each time",
        source="""\
class Decayed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Buffer(torch.tensor(4.0))

    def forward(self, x):
        self.scale = self.scale * 0.5
        return x * self.scale
""",
    ),
    NearMiss(
        title="a registered buffer",
        source="""\
class Registered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        return x * self.steps
""",
    ),
    NearMiss(
        title="only where the device or the dtype is another one",
        source="""\
class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.ones(3))

    def forward(self, x):
        if self.table.device != x.device or self.table.dtype != x.dtype:
            self.table = self.table.to(x)
        return x * self.table
""",
    ),
    NearMiss(
        title="only where the device is another one, asked of a name for the buffer",
        source="""\
class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.ones(3))

    def forward(self, x):
        table = self.table
        if table.device != x.device:
            table = table.to(x.device)
            self.table = table
        return x * table
""",
    ),
    NearMiss(
        title="an element, in place",
        source="""\
class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.slots = nn.Buffer(torch.zeros(3))

    def forward(self, x):
        self.slots[0] += 1
        return x * self.slots
""",
    ),
    NearMiss(
        title="the class has its own way of assigning",
        source="""\
class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.Buffer(torch.tensor(0))

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def forward(self, x):
        self.steps += 1
        return x * self.steps
""",
        reported=True,
    ),
    NearMiss(
        title="a property of that name",
        source="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self._steps = torch.tensor(0)
        self.sets = 0

    @property
    def steps(self):
        return self._steps

    @steps.setter
    def steps(self, value):
        self.sets += 1
        self._steps = value

    def reset(self):
        self.steps = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        return x * self.sets
""",
        reported=True,
    ),
    NearMiss(
        title="outside of forward",
        source="""\
class Reset(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.Buffer(torch.tensor(0))

    def reset(self):
        self.steps = self.steps.zero_()

    def forward(self, x):
        return x * self.steps
""",
    ),
    NearMiss(
        title="another attribute of the same name",
        source="""\
class Inner:
    def __init__(self):
        self.steps = 0


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.ones(3))
        self.inner = Inner()

    def forward(self, x):
        self.inner.steps += 1
        return x * self.table
""",
    ),
)
