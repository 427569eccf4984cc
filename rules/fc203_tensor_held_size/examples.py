"""What TensorHeldSize reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)

INVALID: tuple[Example, ...] = (
    Example(
        title="padding to whole frames, computed from buffers",
        before="""\
import math


class Framed(nn.Module):
    def __init__(self, width, kernel_size, stride):
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel_size, stride)
        kernel_size = torch.tensor(self.conv.kernel_size[0], dtype=torch.int64)
        stride = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        self.hop = nn.Buffer(stride, persistent=False)
        self.win = nn.Buffer(kernel_size, persistent=False)
        # what a frame shares with the next
        self.gap = nn.Buffer(kernel_size - stride, persistent=False)

    def _extra(self, x):
        length = x.shape[-1]
        frames = (length - self.win + self.gap) / self.hop + 1
        frames = torch.ceil(frames).to(torch.int64) - 1
        return frames * self.hop + self.win - self.gap - length

    @staticmethod
    def _pad(x, paddings):
        left, right = paddings
        if max(left, right) >= x.shape[-1]:
            x = F.pad(x, (0, 1))
        return F.pad(x, paddings)

    def forward(self, x):
        return self.conv(self._pad(x, (self.gap, self._extra(x))))
""",
        after="""\
import math


class Framed(nn.Module):
    def __init__(self, width, kernel_size, stride):
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel_size, stride)
        kernel_size_number = int(self.conv.kernel_size[0])
        kernel_size = torch.tensor(self.conv.kernel_size[0], dtype=torch.int64)
        stride_number = int(self.conv.stride[0])
        stride = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        self._hop = stride_number
        self.hop = nn.Buffer(stride, persistent=False)
        self._win = kernel_size_number
        self.win = nn.Buffer(kernel_size, persistent=False)
        self._gap = kernel_size_number - stride_number
        # what a frame shares with the next
        self.gap = nn.Buffer(kernel_size - stride, persistent=False)

    def _extra(self, x):
        length = x.shape[-1]
        exact = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if abs(length - self._win + self._gap) + self._hop < exact:
            frames = (length - self._win + self._gap) / self._hop + 1
        else:
            frames = (length - self.win + self.gap) / self.hop + 1
        frames = math.ceil(frames) - 1
        return frames * self._hop + self._win - self._gap - length

    @staticmethod
    def _pad(x, paddings):
        left, right = paddings
        if max(left, right) >= x.shape[-1]:
            x = F.pad(x, (0, 1))
        return F.pad(x, paddings)

    def forward(self, x):
        return self.conv(self._pad(x, (self._gap, self._extra(x))))
""",
        run="""\
def make(): return Framed(3, 5, 2)
calls = [(torch.linspace(-1, 1, 3 * n).reshape(1, 3, n),) for n in (8, 9, 10, 3)]
""",
    ),
    Example(
        title="beside a class with operators of its own",
        before="""\
import math


class Words(dict):
    def __or__(self, other):
        self.update(other)
        return self


class Framed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, 2)
        self.win = nn.Buffer(torch.tensor(self.conv.kernel_size[0], dtype=torch.int64), persistent=False)
        self.hop = nn.Buffer(torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def forward(self, x):
        frames = torch.ceil((x.shape[-1] - self.win) / self.hop).to(torch.int64)
        return self.conv(F.pad(x, (0, frames)))
""",
        after="""\
import math


class Words(dict):
    def __or__(self, other):
        self.update(other)
        return self


class Framed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, 2)
        self._win = int(self.conv.kernel_size[0])
        self.win = nn.Buffer(torch.tensor(self.conv.kernel_size[0], dtype=torch.int64), persistent=False)
        self._hop = int(self.conv.stride[0])
        self.hop = nn.Buffer(torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def forward(self, x):
        exact = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if abs(x.shape[-1] - self._win) + self._hop < exact:
            frames = math.ceil((x.shape[-1] - self._win) / self._hop)
        else:
            frames = torch.ceil((x.shape[-1] - self.win) / self.hop).to(torch.int64)
        return self.conv(F.pad(x, (0, frames)))
""",
        run="""\
def make(): return Framed(3)
calls = [(torch.linspace(-1, 1, 3 * n).reshape(1, 3, n),) for n in (8, 9, 10, 13)]
""",
    ),
    Example(
        title="a buffer that is read with int() and one that is a bound",
        before="""\
class Window(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self.register_buffer("window", torch.tensor(window, dtype=torch.long), persistent=False)
        self.register_buffer("reach", torch.tensor(window // 2), persistent=False)

    def forward(self, x):
        steps = int(self.window)
        return x[:, : self.reach] * steps
""",
        after="""\
class Window(nn.Module):
    def __init__(self, window: int):
        super().__init__()
        self._window = int(window)
        self.register_buffer("window", torch.tensor(window, dtype=torch.long), persistent=False)
        self._reach = window // 2
        self.register_buffer("reach", torch.tensor(window // 2), persistent=False)

    def forward(self, x):
        steps = int(self._window)
        return x[:, : self._reach] * steps
""",
        run="""\
def make(): return Window(6)
calls = [(torch.linspace(-1, 1, 16).reshape(2, 8),), (torch.linspace(-1, 1, 10).reshape(2, 5),)]
""",
    ),
    Example(
        title="a tensor that is no buffer: item, a loop, a test",
        before="""\
class Rounds(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.rounds = torch.tensor(config.rounds, dtype=torch.int64)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(self.rounds.item() - 1):
            x = self.lin(x)
        if self.rounds > 2:
            x = x * 2
        return x
""",
        after="""\
class Rounds(nn.Module):
    def __init__(self, config):
        super().__init__()
        self._rounds = int(config.rounds)
        self.rounds = torch.tensor(config.rounds, dtype=torch.int64)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(self._rounds - 1):
            x = self.lin(x)
        if self._rounds > 2:
            x = x * 2
        return x
""",
        run="""\
class Config: rounds = 3
def make(): return Rounds(Config())
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
    ),
    Example(
        title="a checkpoint may hold another number",
        unsafe=True,
        before="""\
class Kept(nn.Module):
    def __init__(self, size: int = 3):
        super().__init__()
        self.register_buffer("size", torch.tensor(size, dtype=torch.int64))

    def forward(self, x):
        return x[:, self.size :] + 1
""",
        after="""\
class Kept(nn.Module):
    def __init__(self, size: int = 3):
        super().__init__()
        self._size = size
        self.register_buffer("size", torch.tensor(size, dtype=torch.int64))

    def forward(self, x):
        return x[:, self._size :] + 1
""",
        run="""\
def make(): return Kept()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
    ),
    Example(
        title="a number that two methods need, without math in the file",
        before="""\
class Chunks(nn.Module):
    def __init__(self, chunk: int, overlap: int):
        super().__init__()
        self.chunk = torch.tensor(chunk)
        self.over = torch.tensor(overlap)
        self.step = self.chunk - self.over

    def _missing(self, n):
        length = n.shape[1]
        chunks = torch.ceil((length - self.over) / self.step).long()
        return chunks * self.step + self.over - length

    def forward(self, x):
        missing = self._missing(x)
        if missing > 0:
            x = F.pad(x, [0, missing])
        return x.unfold(1, int(self.chunk), int(self.step)) * 2
""",
        after="""\
class Chunks(nn.Module):
    def __init__(self, chunk: int, overlap: int):
        super().__init__()
        self._chunk = chunk
        self.chunk = torch.tensor(chunk)
        self._over = overlap
        self.over = torch.tensor(overlap)
        self._step = self._chunk - self._over
        self.step = self.chunk - self.over

    def _missing(self, n):
        length = n.shape[1]
        exact = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if self._step > 0 and abs(length - self._over) + self._step < exact:
            chunks = int(-(-((length - self._over) / self._step) // 1))
        else:
            chunks = torch.ceil((length - self.over) / self.step).long()
        return chunks * self._step + self._over - length

    def forward(self, x):
        missing = self._missing(x)
        if missing > 0:
            x = F.pad(x, [0, missing])
        return x.unfold(1, int(self._chunk), int(self._step)) * 2
""",
        run="""\
def make(): return Chunks(4, 1)
calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (7, 8, 9)]
""",
    ),
    Example(
        title="padding to a multiple, and a quotient that int() cuts off",
        before="""\
class Strided(nn.Module):
    def __init__(self, stride: int = 3):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride), persistent=False)

    def forward(self, x):
        length = x.shape[-1]
        short = (self.stride - length % self.stride) % self.stride
        if short:
            x = F.pad(x, (0, short))
        n = (length - self.stride) / self.stride
        return x[..., : int(n) + 1]
""",
        after="""\
class Strided(nn.Module):
    def __init__(self, stride: int = 3):
        super().__init__()
        self._stride = stride
        self.register_buffer("stride", torch.tensor(stride), persistent=False)

    def forward(self, x):
        length = x.shape[-1]
        short = (self._stride - length % self._stride) % self._stride
        if short:
            x = F.pad(x, (0, short))
        exact = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if self._stride > 0 and abs(length - self._stride) + self._stride < exact:
            n = (length - self._stride) / self._stride
        else:
            n = (length - self.stride) / self.stride
        return x[..., : int(n) + 1]
""",
        run="""\
def make(): return Strided()
calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (6, 7, 8)]
""",
    ),
    Example(
        title="rounded where it is returned, and inside of other arithmetic",
        before="""\
class Cut(nn.Module):
    def __init__(self, hop: int):
        super().__init__()
        self.hop = torch.tensor(hop)
        self.win = torch.tensor(2 * hop)

    def _count(self, x):
        return ((x.shape[-1] - self.win) / self.hop).ceil().long()

    def forward(self, x):
        n = int((x.shape[-1] - self.win) / self.hop) + 1
        return x[:, :n], F.pad(x, (0, self._count(x)))
""",
        after="""\
class Cut(nn.Module):
    def __init__(self, hop: int):
        super().__init__()
        self._hop = hop
        self.hop = torch.tensor(hop)
        self._win = 2 * hop
        self.win = torch.tensor(2 * hop)

    def _count(self, x):
        exact_2 = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if self._hop > 0 and abs(x.shape[-1] - self._win) + self._hop < exact_2:
            return int(-(-((x.shape[-1] - self._win) / self._hop) // 1))
        else:
            return ((x.shape[-1] - self.win) / self.hop).ceil().long()

    def forward(self, x):
        exact = 1 / torch.finfo(torch.get_default_dtype()).eps
        # below it, the quotient rounds to the same integer as in tensors of the default dtype
        if self._hop > 0 and abs(x.shape[-1] - self._win) + self._hop < exact:
            n = int((x.shape[-1] - self._win) / self._hop) + 1
        else:
            n = int((x.shape[-1] - self.win) / self.hop) + 1
        return x[:, :n], F.pad(x, (0, self._count(x)))
""",
        run="""\
def make(): return Cut(3)
calls = [(torch.linspace(-1, 1, 2 * n).reshape(2, n),) for n in (7, 8, 9)]
""",
    ),
    Example(
        title="the weights are initialised again, with the same number",
        before="""\
class Shifted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, dilation=2)
        reach = torch.tensor((self.conv.kernel_size[0] - 1) * self.conv.dilation[0], dtype=torch.int64)
        self.reach = nn.Buffer(reach, persistent=False)

    def forward(self, x):
        if x.shape[-1] <= self.reach:
            x = F.pad(x, (self.reach, 0))
        return self.conv(x)


def initialise(module):
    if isinstance(module, Shifted):
        reach = (module.conv.kernel_size[0] - 1) * module.conv.dilation[0]
        nn.init.constant_(module.reach, reach)
    elif isinstance(module, nn.Conv1d):
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
""",
        after="""\
class Shifted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, dilation=2)
        reach_number = int((self.conv.kernel_size[0] - 1) * self.conv.dilation[0])
        reach = torch.tensor((self.conv.kernel_size[0] - 1) * self.conv.dilation[0], dtype=torch.int64)
        self._reach = reach_number
        self.reach = nn.Buffer(reach, persistent=False)

    def forward(self, x):
        if x.shape[-1] <= self._reach:
            x = F.pad(x, (self._reach, 0))
        return self.conv(x)


def initialise(module):
    if isinstance(module, Shifted):
        reach = (module.conv.kernel_size[0] - 1) * module.conv.dilation[0]
        nn.init.constant_(module.reach, reach)
    elif isinstance(module, nn.Conv1d):
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
""",
        run="""\
def make(): return Shifted(2).apply(initialise)
calls = [(torch.linspace(-1, 1, 16).reshape(1, 2, 8),)]
""",
    ),
    Example(
        title="a number that is set again is reported",
        before="""\
class Longer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pad", torch.tensor(1), persistent=False)

    def grow(self):
        self.pad += 1

    def forward(self, x):
        return x[:, self.pad :] * 2
""",
        after=None,
        run="""\
def make(): return Longer()
calls = [(torch.ones(2, 3),), lambda m: (m.grow(), m(torch.ones(2, 3)))[1]]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a factor in arithmetic with activations",
        source="""\
class Scaled(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("n", torch.tensor(n), persistent=False)

    def forward(self, x):
        return x / self.n
""",
    ),
    NearMiss(
        title="another part of the file sets another value",
        source="""\
class Padded(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("n", torch.tensor(n), persistent=False)

    def forward(self, x):
        return F.pad(x, (self.n, 0))


def widen(module):
    if isinstance(module, Padded):
        nn.init.constant_(module.n, 7)
""",
        reported=True,
    ),
    NearMiss(
        title="changed in place under another name",
        source="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(0), persistent=False)

    def forward(self, x):
        n = self.n
        n += 1
        return F.pad(x, (self.n, 0))
""",
        reported=True,
    ),
    NearMiss(
        title="another attribute is the same tensor, and changes",
        source="""\
class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.tensor(2)
        self.twin = self.n

    def forward(self, x):
        self.twin += 1
        return x[:, self.n :]
""",
        reported=True,
    ),
    NearMiss(
        title="a tensor of one element, made of a list",
        source="""\
class Listed(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.n = torch.tensor(sizes, dtype=torch.int64)

    def forward(self, x):
        return x[:, self.n :]
""",
    ),
    NearMiss(
        title="a number over a tensor is a product with its reciprocal: 49 / torch.tensor(49) is less than 1",
        source="""\
class Share(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.n = torch.tensor(n)

    def forward(self, x):
        return x[:, : int(x.shape[1] / self.n)]
""",
        reported=True,
    ),
    NearMiss(
        title="it goes into a tensor that other code gets",
        source="""\
class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(2), persistent=False)

    def forward(self, x):
        n = self.n + 1
        return F.pad(x, (n, 0)), n
""",
        reported=True,
    ),
    NearMiss(
        title="a number of floats, rounded by the dtype",
        source="""\
class Ratio(nn.Module):
    def __init__(self, ratio: float):
        super().__init__()
        self.register_buffer("ratio", torch.tensor(ratio), persistent=False)

    def forward(self, x):
        return x[:, : int(x.shape[1] * self.ratio)]
""",
    ),
    NearMiss(
        title="set in one case only",
        source="""\
class Sometimes(nn.Module):
    def __init__(self, wide):
        super().__init__()
        if wide:
            self.n = torch.tensor(2)
        else:
            self.n = torch.tensor(3)

    def forward(self, x):
        return F.pad(x, (self.n, 0))
""",
    ),
    NearMiss(
        title="a subclass has its own",
        source="""\
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(2), persistent=False)

    def forward(self, x):
        return F.pad(x, (self.n, 0))


class Own(Base):
    def __init__(self):
        super().__init__()
        self.n = torch.tensor(4)
""",
        reported=True,
    ),
    NearMiss(
        title="the quotient is used as it is",
        source="""\
class Mean(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("n", torch.tensor(n), persistent=False)

    def forward(self, x):
        share = x.shape[1] / self.n
        return x * share
""",
    ),
    NearMiss(
        title="a public method gives it to whoever asks",
        source="""\
class Asked(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("n", torch.tensor(n), persistent=False)

    def padding(self):
        return self.n * 2

    def forward(self, x):
        return F.pad(x, (self.padding(), 0))
""",
        reported=True,
    ),
    NearMiss(
        title="Python numbers already",
        source="""\
class Plain(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.n = n

    def forward(self, x):
        return F.pad(x, (self.n, 0))
""",
    ),
)
