"""What FlagInBuffer reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a codebook that its first batch initialises",
        before="""\
class Codebook(nn.Module):
    def __init__(self, wait=False):
        super().__init__()
        self.register_buffer("initted", torch.tensor(not wait))
        self.register_buffer("embed", torch.ones(4))

    def init_embed(self, data):
        if self.initted:
            return
        self.embed.data.copy_(data.mean(0))
        self.initted.data.copy_(torch.tensor(True))

    def forward(self, x):
        self.init_embed(x)
        return x * self.embed
""",
        after="""\
class Codebook(nn.Module):
    def __init__(self, wait=False):
        super().__init__()
        self.register_buffer("initted", torch.tensor(not wait))
        self._initted = not wait
        self.register_buffer("embed", torch.ones(4))

    def init_embed(self, data):
        if self._initted:
            return
        self.embed.data.copy_(data.mean(0))
        self.initted.data.copy_(torch.tensor(True))
        self._initted = True

    def forward(self, x):
        self.init_embed(x)
        return x * self.embed

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self._initted = bool(self.initted)
""",
        run="""\
def make(): return Codebook(False)
calls = [(torch.randn(n, 4),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="a flag of floats in a list, asked with item() and set in place",
        before="""\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.Tensor([False]))
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        if not self.ready.item():
            with torch.no_grad():
                self.scale.copy_(x.detach().std(0) + 1)
                self.ready.fill_(True)
        return x / self.scale  # as the first batch has it
""",
        after="""\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.Tensor([False]))
        self._ready = False
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        if not self._ready:
            with torch.no_grad():
                self.scale.copy_(x.detach().std(0) + 1)
                self.ready.fill_(True)
                self._ready = True
        return x / self.scale  # as the first batch has it

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self._ready = bool(self.ready)
""",
        run="""\
def make(): return Norm()
calls = [(torch.randn(n, 4),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="one that is not part of the state_dict, and is reset",
        before="""\
class Actnorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("_done", torch.zeros(1, dtype=torch.bool), persistent=False)
        self.register_buffer("shift", torch.zeros(4))

    def reset(self):
        self._done.zero_()

    def forward(self, x):
        if self.training and not bool(self._done):
            self.shift.copy_(-x.mean(0).detach())
            self._done[0] = True
        return x + self.shift
""",
        after="""\
class Actnorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("_done", torch.zeros(1, dtype=torch.bool), persistent=False)
        self._done_2 = False
        self.register_buffer("shift", torch.zeros(4))

    def reset(self):
        self._done.zero_()
        self._done_2 = False

    def forward(self, x):
        if self.training and not self._done_2:
            self.shift.copy_(-x.mean(0).detach())
            self._done[0] = True
            self._done_2 = True
        return x + self.shift
""",
        run="""\
def make(): return Actnorm()
calls = [(torch.randn(n, 4),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="a new tensor takes its place",
        before="""\
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cold", torch.ones(1))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        return y * 0.5 if self.cold else y

    def warm(self):
        self.cold = torch.zeros(1)
""",
        after="""\
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cold", torch.ones(1))
        self._cold = True
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        return y * 0.5 if self._cold else y

    def warm(self):
        self.cold = torch.zeros(1)
        self._cold = False

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self._cold = bool(self.cold)
""",
        run="""\
def make(): return Warm()
calls = [(torch.randn(n, 4),) for n in (3, 4)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="two flags of one class, and a default that is asked for None",
        before="""\
class Gate(nn.Module):
    def __init__(self, table=None):
        super().__init__()
        self.register_buffer("filled", torch.tensor(table is not None, dtype=torch.uint8))
        self.register_buffer("open", torch.tensor(True))
        self.register_buffer("table", torch.zeros(4) if table is None else table)

    def close(self):
        self.open.data = torch.tensor(False)

    def forward(self, x):
        if self.filled and self.open:
            return x + self.table
        return x - 1
""",
        after="""\
class Gate(nn.Module):
    def __init__(self, table=None):
        super().__init__()
        self.register_buffer("filled", torch.tensor(table is not None, dtype=torch.uint8))
        self._filled = table is not None
        self.register_buffer("open", torch.tensor(True))
        self._open = True
        self.register_buffer("table", torch.zeros(4) if table is None else table)

    def close(self):
        self.open.data = torch.tensor(False)
        self._open = False

    def forward(self, x):
        if self._filled and self._open:
            return x + self.table
        return x - 1

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self._open = bool(self.open)
        self._filled = bool(self.filled)
""",
        run="""\
def make(): return Gate(torch.ones(4))
calls = [(torch.randn(n, 4),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="a conditional expression in a method that forward calls",
        before="""\
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("raw", torch.tensor([True]))

    def gain(self):
        return 1.0 if self.raw.all() else 2.0

    def tune(self):
        self.raw[...] = False

    def forward(self, x):
        return x * self.gain()
""",
        after="""\
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("raw", torch.tensor([True]))
        self._raw = True

    def gain(self):
        return 1.0 if self._raw else 2.0

    def tune(self):
        self.raw[...] = False
        self._raw = False

    def forward(self, x):
        return x * self.gain()

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self._raw = bool(self.raw)
""",
        run="""\
def make(): return Mixed()
calls = [(torch.randn(n, 4),) for n in (3, 4)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a number, not a flag",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(3))

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
    ),
    NearMiss(
        title="the flag is added up",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def forward(self, x):
        if self.on:
            return x
        return x + self.on
""",
        reported=True,
    ),
    NearMiss(
        title="it is handed on, and may be changed there",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def other(self, module):
        module.take(self.on)

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="it is set to what is computed",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def other(self, x):
        self.on.fill_(x.sum() > 0)

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="a parameter that may be anything",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(flag))

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
    ),
    NearMiss(
        title="the class has its own way to load",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self.on.fill_(True)

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="registered under a condition",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        if flag:
            self.register_buffer("on", torch.tensor(False))

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
    ),
    NearMiss(
        title="nothing compiled asks",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def ask(self):
        return 1 if self.on else 2

    def forward(self, x):
        return x
""",
    ),
    NearMiss(
        title="several flags in one tensor",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor([False, True]))

    def forward(self, x):
        if self.on[0]:
            return x
        return x + 1
""",
    ),
    NearMiss(
        title="attributes by computed names",
        source="""\
class Net(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.register_buffer("on", torch.tensor(False))

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def forward(self, x):
        if self.on:
            return x
        return x + 1
""",
        reported=True,
    ),
)
