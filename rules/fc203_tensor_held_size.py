"""FC203: sizes, paddings and counts that a module keeps in 0-d tensors though its constructor knows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts, HeldNumbers, NumberUses
from patcher.facts.numbers.evaluated import surely_evaluated
from patcher.facts.numbers.held_numbers import Combined, Local, Made, Own, Plain, Recipe
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    Replace,
    ReplaceStatements,
    filled,
)

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}
#: Without ``math`` in the file; both take numbers and 0-d tensors.
_ROUNDED = {"ceil": "int(-(-{0} // 1))", "floor": "int({0} // 1)"}

#: Where the quotients of numbers and of tensors are rounded to the same integer.
_LIMIT = "1 / {0}({1}()).eps"
_WHY = "# below it, the quotient rounds to the same integer as in tensors of the default dtype"


class TensorHeldSize:
    """Whole numbers that a module keeps in 0-d tensors though its constructor knows them, where they serve as sizes.

    What it does:
        Keeps the number beside the tensor, as a Python integer (``self._stride`` for ``self.stride``), and lets the
        methods that compiled code reaches read that one wherever the number is a size: padding, bounds of a slice,
        ``range``, ``int()``, a shape, a test. The tensor stays where it is, so state_dict, ``to()`` and other readers
        see what they saw. The number is followed through names, arithmetic of integers, tuples, and the private methods
        of the class that take it or return it; ``torch.ceil(a / b).to(torch.int64)`` becomes ``math.ceil(a / b)``.

    Why it breaks compilation:
        Dynamo does not know what a tensor holds. A size, a bound or a test that needs it ends the graph, in every layer
        that pads its input. Measured on torch 2.13, transformers 5.23.0: a small MimiModel has 22 graphs and 13 breaks
        before, one graph and none after; EncodecModel 34 graphs and 22 break events, then 24 and 9, all from its LSTM.

    Fix safety:
        Safe when the tensor is set once, in the constructor, with an integer dtype, is not part of the state_dict, and
        everything in the file that writes an attribute of that name on what may be such a module provably writes the
        same number (an ``_init_weights``, say). A method is only changed when every use of the number in it, and in
        what it passes the number to, takes an integer as well as a tensor: the others keep the tensor.
        A quotient of two integer tensors is computed in the default dtype, with 24 bits of precision as a rule; Python
        has 53. Rounded up or down, both are the same while ``abs(a) + b`` is below ``1 / eps`` of that dtype: the code
        asks for that, and computes as before otherwise. (The two roundings of ``a / b + 1`` are off by no more than
        ``(2 * a / b + 1) * eps / 2``, and a quotient that is no integer is at least ``1 / b`` away from one.)
        Unsafe, with what has to be true: a persistent buffer, which a checkpoint may overwrite; modules that import
        this one and write attributes of that name. Refused, with the reason: other writes, subclasses that set it.
        Seen from outside: a module that was made on the meta device (``to_empty``) has its numbers, where the tensors
        hold nothing; what other code puts into the tensor without naming it (a copy of all ``buffers()``) or without
        importing this module no longer counts; a module pickled as a whole before the change lacks the new attribute.
        On a GPU, a number over zero in integers raises, where it gave anything; so does, with float16 as the default
        dtype, a size above 65504, an infinity there, of which PyTorch made any integer.

    References:
        PyTorch, graph break "Data-dependent branching"; transformers, the padding of Encodec and Mimi.
    """

    code: ClassVar[str] = "FC203"
    name: ClassVar[str] = "tensor-held-size"
    triggers: ClassVar[tuple[bytes, ...]] = (b"tensor(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the class ``node`` where compiled code needs numbers that it keeps in tensors."""
        assert isinstance(node, ast.ClassDef)
        held = facts.held_numbers(node)
        if held is None:
            return
        if held.refused:
            uses = facts.number_uses(node, held.refused)
            if uses.breaking:
                reason = next(iter(held.refused.values()))
                yield Finding(uses.breaking[0], _message(sorted(held.refused)), assumption=reason)
        uses = facts.number_uses(node, held.found)
        if not uses.breaking:
            return
        if not uses.reads:
            at, reason = uses.obstacles[0]
            yield Finding(uses.breaking[0], _message(sorted(held.found)), assumption=f"line {at.lineno}: {reason}")  # type: ignore[attr-defined]
            return
        write = _Writer(held, uses, node, facts)
        names = sorted({r.attr for r in write.reads})
        doubts = sorted({held.found[n].doubt for n in write.names} - {""})
        applicability = Applicability.UNSAFE if doubts else Applicability.SAFE
        spelled = [facts.spelled(f"torch.{name}", node) for name in ("finfo", "get_default_dtype")]
        limit = _LIMIT.format(
            *(s or d for s, d in zip(spelled, ("torch.finfo", "torch.get_default_dtype"), strict=True))
        )
        imports = ("torch",) if uses.quotients and None in spelled else ()
        if imports and not facts.importable("torch", node):
            yield Finding(uses.reads[0], _message(names), assumption="`torch` is not imported here, or is another name")
            return
        fix = Fix((*write.constructor(), *write.methods(limit)), applicability, imports)
        yield Finding(uses.reads[0], _message(names), fix, "; ".join(doubts))

    invalid: ClassVar[tuple[Example, ...]] = (
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
        self._window = window
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
    valid: ClassVar[tuple[NearMiss, ...]] = (
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


def _message(names: list[str]) -> str:
    which = ", ".join(f"`self.{n}`" for n in names)
    return f"{which}: a number in a tensor; where it serves as a size, the graph ends"


class _Writer:
    """Writes the change of one class. ``names``: attribute -> the one beside it that holds the Python number."""

    def __init__(self, held: HeldNumbers, uses: NumberUses, cls: ast.ClassDef, facts: Facts) -> None:
        self.held = held
        self.uses = uses
        self.facts = facts
        self.reads = [r for r in uses.reads if isinstance(r, ast.Attribute)]
        self.names: dict[str, str] = {}
        self.choices: dict[ast.expr, tuple[Code, ast.expr | Code]] = {}
        self.locals: dict[ast.stmt, tuple[str, Recipe]] = {}
        wanted = {r.attr for r in self.reads}
        while wanted:
            name = wanted.pop()
            if name not in self.names:
                self.names[name] = facts.fresh_attribute(f"_{name.lstrip('_')}", cls)
                wanted |= set(self.needed(held.found[name].recipe))

    def needed(self, recipe: Recipe) -> Iterator[str]:
        """The attributes that ``recipe`` is made of; the local names are given out on the way."""
        match recipe:
            case Own(name=name):
                yield name
            case Local(definition=d, recipe=inner):
                statement = self.facts.statement_of(d.node)
                if statement not in self.locals:
                    self.locals[statement] = (self.facts.fresh_name(f"{d.name}_number", statement), inner)
                yield from self.needed(inner)
            case Combined(left=left, right=right):
                yield from self.needed(left)
                yield from self.needed(right)

    def number(self, recipe: Recipe) -> Code:
        match recipe:
            case Made(expr=expr, whole=whole):
                return Code("int({0})" if whole else "{0}", (expr,))
            case Plain(expr=expr):
                return Code("{0}", (expr,))
            case Own(name=name):
                return Code(f"{self.held.me}.{self.names[name]}")
            case Local(definition=d):
                return Code(self.locals[self.facts.statement_of(d.node)][0])
            case Combined(expr=expr, left=left, right=right):
                return Code(f"{{0}} {_SIGNS[type(expr.op)]} {{1}}", (self.number(left), self.number(right)))

    def constructor(self) -> Iterator[Edit]:
        """The numbers, set where the tensors are made."""
        lines: dict[ast.stmt, list[Code]] = {}
        for statement, (local, recipe) in self.locals.items():
            lines.setdefault(statement, []).append(Code(f"{local} = {{0}}", (self.number(recipe),)))
        for name, new in self.names.items():
            held = self.held.found[name]
            line = Code(f"{self.held.me}.{new} = {{0}}", (self.number(held.recipe),))
            lines.setdefault(held.statement, []).append(line)
        for statement, code in lines.items():
            yield Insert(statement, tuple(code))

    def methods(self, limit: str) -> Iterator[Edit]:
        """The reads, and the arithmetic of floats, which is exact while the numbers are not huge."""
        syntax = self.facts.syntax
        replaced: dict[ast.AST, Code] = {r: Code(f"{{0}}.{self.names[r.attr]}", (r.value,)) for r in self.reads}
        direct = {r.operand for r in self.uses.roundings}
        exact: dict[ast.AST, Code] = {}
        for q in self.uses.quotients:
            parts = [filled(part, replaced) for part in (q.numerator, q.denominator)]
            test = "" if self.positive(q.denominator) else "{1} > 0 and "
            exact[q.expr] = Code(test + "abs({0}) + {1} < {2}", (*parts, Code(limit)))
            if q.expr not in direct:
                replaced[q.expr] = self.choice(filled(q.expr, replaced), exact[q.expr], q.expr)
        for r in self.uses.roundings:
            spelled = self.facts.spelled(f"math.{r.how}", r.expr)
            template = f"{spelled}({{0}})" if spelled else _ROUNDED[r.how]
            number = Code(template, (filled(r.operand, replaced),))
            if r.operand in exact:
                number = self.choice(number, exact[r.operand], r.expr)
            elif not all(self.positive(q.denominator) for q in self.uses.quotients):
                number = Code("{0} if isinstance({1}, float) else {2}", (number, r.operand, r.expr))
            replaced[r.expr] = number
        read = "int({0})" if self.uses.quotients else "{0}"  # where floats are not exact, it is a tensor as before
        for item in self.uses.items:
            assert isinstance(item.func, ast.Attribute)
            replaced[item] = Code(read, (filled(item.func.value, replaced),))
        tops: dict[ast.stmt, list[ast.expr]] = {}
        for node in replaced:
            if isinstance(node, ast.expr) and not any(p in replaced for p in syntax.ancestors(node)):
                tops.setdefault(self.facts.statement_of(node), []).append(node)
        yield from (edit for s, nodes in tops.items() for edit in self.written(s, nodes, replaced))

    def choice(self, exact: ast.expr | Code, test: Code, otherwise: ast.expr) -> Code:
        self.choices[otherwise] = (test, exact)
        return Code("{0} if {1} else {2}", (exact, test, otherwise))

    def written(self, statement: ast.stmt, nodes: list[ast.expr], replaced: dict[ast.AST, Code]) -> Iterator[Edit]:
        """``statement`` with ``nodes`` replaced: once for each way, where there is one choice between two."""
        chosen = [n for n in nodes if n in self.choices]
        free = len(chosen) == 1 and self.facts.why_not_replaced(statement, ()) is None
        found = surely_evaluated(chosen[0], statement, self.facts.syntax) if free else None
        if found is None:
            yield from (Replace(node, replaced[node]) for node in nodes)
            return
        start, value = found
        test, exact = self.choices[chosen[0]]
        forms = [form if isinstance(form, Code) else Code("{0}", (form,)) for form in (exact, chosen[0])]
        yes, no = (filled(value, {**replaced, chosen[0]: form}) for form in forms)
        name = self.facts.fresh_name("exact", statement)
        below = Code(test.template, (*test.parts[:2], Code(name)))
        lines = f"{_WHY}\nif {{0}}:\n    {start}{{1}}\nelse:\n    {start}{{2}}"
        code = Code(f"{name} = {{0}}", (test.parts[2],)), Code(lines, (below, yes, no))
        yield ReplaceStatements((statement,), code)

    def positive(self, denominator: ast.expr) -> bool:
        return isinstance(denominator, ast.Attribute) and self.held.positive(denominator.attr)
