"""FC102: a check of tensor data that raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import ClassVar

from patcher.facts import AnyOf, Demand, Facts, Guard, Plain, Required, When
from patcher.rule import (
    Code,
    Cost,
    Edit,
    Enclose,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    Replace,
    ReplaceStatements,
    block,
    filled,
)


class DataDependentGuard:
    """An ``if`` on tensor data that only raises, an ``assert`` with a message of its own, ``torch._check_tensor_all``.

    What it does:
        Compiled code (``torch.compiler.is_compiling()``) checks the same with ``torch._assert_async``, which is part of
        the graph; in eager code everything stays as it is. The Python part of a test (``labels is not None and ...``)
        stays a Python test. An ``assert`` becomes one or more that Dynamo puts into the graph: of one tensor each, with
        a fixed message.

    Why it breaks compilation:
        The test needs the tensor's value while Dynamo is tracing, before there is one. ``torch._check_tensor_all`` and
        ``torch._check`` of an ``.item()`` read it as well. The graph ends there, and inside of a loop the whole frame
        is dropped. ``assert`` of a tensor is fine when its message is a literal; an f-string, ``not``, ``and``, ``or``
        and ``.item()`` end the graph.

    Fix safety:
        Safe. What passed still passes, with the same values; what raised still raises, but compiled code raises a
        ``RuntimeError`` with the constant part of the message, and later. On a GPU it is a device-side assertion: the
        error shows at the next synchronisation, what follows the check may run before it, and the process cannot go on
        with that GPU. So the check is left alone where a ``try``, or a context manager that is not PyTorch's, is around
        it, where a ``try`` in this file gets to the function, and where the error is no error by its name. A condition
        that is not known to have rank 0 is reshaped to ``()``, which raises for more elements as ``if`` does.
        Tensors that Python would not look at (after ``and``) are looked at only when that cannot fail. Numbers that
        ``.item()`` gave are compared as tensors only where no digit is lost. Anything else is reported and left alone.

    References:
        ``torch._assert_async``; PyTorch, "Data-dependent control flow" (graph break GB0170). The check function of
        transformers 5, which 33 of 221 architectures go through.
    """

    code: ClassVar[str] = "FC102"
    name: ClassVar[str] = "data-dependent-guard"
    triggers: ClassVar[tuple[bytes, ...]] = (b"raise ", b"assert ", b"assert(", b"_check")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.If, ast.Assert, ast.Expr)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it only raises for some tensor data, in code that gets compiled."""
        assert isinstance(node, (ast.If, ast.Assert, ast.Expr))
        guard = facts.guards.of(node)
        if guard is None or facts.eager_only(node) or not (facts.reached(node) or facts.guards.is_for_compiling(node)):
            return
        message = "a check of tensor data that raises ends the graph"
        edits = guard if isinstance(guard, str) else _Writer(node, guard, facts).edits()
        if isinstance(edits, str):
            yield Finding(node, message, assumption=edits)
        else:
            spelled = facts.spelled("torch._assert_async", node)
            yield Finding(node, message, Fix(edits, imports=() if spelled else ("torch",)))

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="a check of the input, with a message that shows it",
            before="""\
class Checked(nn.Module):
    def forward(self, ids):
        # words beyond the vocabulary
        if (ids > 9).any():
            raise ValueError(f"no word {ids.max()} in a vocabulary of {10}")  # says which
        return ids + 1
""",
            after="""\
class Checked(nn.Module):
    def forward(self, ids):
        # words beyond the vocabulary
        if torch.compiler.is_compiling():
            torch._assert_async(~(ids > 9).any(), "no word ... in a vocabulary of ...")
        elif (ids > 9).any():
            raise ValueError(f"no word {ids.max()} in a vocabulary of {10}")  # says which
        return ids + 1
""",
            run="""\
def make(): return Checked()
calls = [(torch.tensor([1, 2]),), (torch.tensor([1, 10]),), (torch.tensor([3, 4]),)]
""",
        ),
        Example(
            title="a Python part of the test, and statements before the error",
            before="""\
class Labelled(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words

    def forward(self, x, labels=None):
        if labels is not None and labels.max() >= self.words:
            worst = labels.max().item()
            raise IndexError("label %d of %d" % (worst, self.words))
        return x * 2 if labels is None else x + labels
""",
            after="""\
class Labelled(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words

    def forward(self, x, labels=None):
        if torch.compiler.is_compiling():
            if labels is not None:
                torch._assert_async(~(labels.max() >= self.words).reshape(()), "label ... of ...")
        elif labels is not None and labels.max() >= self.words:
            worst = labels.max().item()
            raise IndexError("label %d of %d" % (worst, self.words))
        return x * 2 if labels is None else x + labels
""",
            run="""\
def make(): return Labelled(5)
calls = [(torch.ones(2),), (torch.ones(2), torch.tensor([1, 4])), (torch.ones(2), torch.tensor([1, 5]))]
""",
        ),
        Example(
            title="a check function ends in PyTorch's own check, in a loop",
            before="""\
class Layers(nn.Module):
    def must_hold(self, cond, message):
        torch._check_tensor_all(cond, lambda: message)

    def forward(self, x):
        for scale in (1.0, 2.0):
            self.must_hold(x < 9, "too large")
            x = x * scale + 1
        return x
""",
            after="""\
class Layers(nn.Module):
    def must_hold(self, cond, message):
        if torch.compiler.is_compiling():
            torch._assert_async(cond._is_all_true(), "check failed: cond")
        else:
            torch._check_tensor_all(cond, lambda: message)

    def forward(self, x):
        for scale in (1.0, 2.0):
            self.must_hold(x < 9, "too large")
            x = x * scale + 1
        return x
""",
            run="""\
def make(): return Layers()
calls = [(torch.ones(3),), (torch.ones(3) * 8.5,)]
""",
        ),
        Example(
            title="trained: the branch that does not raise does the work",
            before="""\
class Positive(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        if not torch.isfinite(h).all():
            raise FloatingPointError("overflow")
        else:
            h = h.tanh()  # goes on
        return h
""",
            after="""\
class Positive(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        if torch.compiler.is_compiling():
            torch._assert_async(torch.isfinite(h).all(), "overflow")
        if not torch.compiler.is_compiling() and not torch.isfinite(h).all():
            raise FloatingPointError("overflow")
        else:
            h = h.tanh()  # goes on
        return h
""",
            run="""\
def make(): return Positive()
calls = [(torch.linspace(-1, 1, 6).view(2, 3),), (torch.full((2, 3), float("inf")),)]
train = True
""",
        ),
        Example(
            title="an assertion with an f-string, and one of two tensors",
            before="""\
class Asserted(nn.Module):
    def forward(self, lengths):
        total = lengths.sum()
        assert total > 0, f"nothing in {lengths}"
        assert not (total == 3), "three"
        assert (lengths >= 0).all() and not (lengths > 9).any(), "out of range"
        return lengths / total
""",
            after="""\
class Asserted(nn.Module):
    def forward(self, lengths):
        total = lengths.sum()
        if torch.compiler.is_compiling():
            assert total > 0, "nothing in ..."
        else:
            assert total > 0, f"nothing in {lengths}"
        if torch.compiler.is_compiling():
            assert total != 3, "three"
        else:
            assert not (total == 3), "three"
        assert (lengths >= 0).all(), "out of range"
        assert ~(lengths > 9).any(), "out of range"
        return lengths / total
""",
            run="""\
def make(): return Asserted()
calls = [(torch.tensor(v),) for v in ([1, 3], [0, 0], [-1, 5], [3, 10], [1, 2])]
""",
        ),
        Example(
            title="an elif, and a Python reason to raise",
            before="""\
class Modes(nn.Module):
    def forward(self, x, mask, strict: bool = True):
        if not strict:
            x = x + 1
        elif mask.sum() == 0:
            raise ValueError("nothing to see")
        if x.dim() > 2 or x.abs().max() > 9:
            raise RuntimeError(f"{x.shape}")
        return x * mask
""",
            after="""\
class Modes(nn.Module):
    def forward(self, x, mask, strict: bool = True):
        if not strict:
            x = x + 1
        elif torch.compiler.is_compiling():
            torch._assert_async(mask.sum() != 0, "nothing to see")
        elif mask.sum() == 0:
            raise ValueError("nothing to see")
        if x.dim() > 2 or (not torch.compiler.is_compiling() and x.abs().max() > 9):
            raise RuntimeError(f"{x.shape}")
        if torch.compiler.is_compiling():
            torch._assert_async(~(x.abs().max() > 9), "check failed: x.dim() > 2 or x.abs().max() > 9")
        return x * mask
""",
            run="""\
def make(): return Modes()
x, on = torch.linspace(-1, 1, 6), torch.ones(6)
calls = [(x, on), (x, on, False), (x * 90, on), (x, on * 0), (x.view(1, 2, 3), on.view(2, 3))]
""",
        ),
        Example(
            title="numbers read from tensors, and tensors that are close",
            before="""\
class Read(nn.Module):
    def forward(self, x, steps):
        assert steps.sum().long().item() < 10
        if not torch.allclose(x.sum(-1), torch.ones(2), atol=1e-3):
            raise ValueError("rows do not sum to one")
        if bool((x < 0).any().item()):
            raise ValueError("negative")
        return x * steps
""",
            after="""\
class Read(nn.Module):
    def forward(self, x, steps):
        assert steps.sum().long() < 10
        if torch.compiler.is_compiling():
            torch._assert_async(torch.isclose(x.sum(-1), torch.ones(2), atol=1e-3).all(), "rows do not sum to one")
        elif not torch.allclose(x.sum(-1), torch.ones(2), atol=1e-3):
            raise ValueError("rows do not sum to one")
        if torch.compiler.is_compiling():
            torch._assert_async(~(x < 0).any(), "negative")
        elif bool((x < 0).any().item()):
            raise ValueError("negative")
        return x * steps
""",
            run="""\
def make(): return Read()
x, s = torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([1, 2])
calls = [(x, s), (x * 2, s), (x, s * 5), (torch.tensor([[1.5, -0.5], [0.5, 0.5]]), s)]
""",
        ),
        Example(
            title="one element, in a shape: more elements are an error, as before",
            before="""\
class OneElement(nn.Module):
    def forward(self, x):
        limit = x.view(-1)
        if limit > 2:
            raise ValueError("too much")
        return x + 1
""",
            after="""\
class OneElement(nn.Module):
    def forward(self, x):
        limit = x.view(-1)
        if torch.compiler.is_compiling():
            torch._assert_async(~(limit > 2).reshape(()), "too much")
        elif limit > 2:
            raise ValueError("too much")
        return x + 1
""",
            run="""\
def make(): return OneElement()
calls = [(torch.ones(1),), (torch.ones(1, 1) * 3,), (torch.ones(2),)]
""",
        ),
        Example(
            title="several tensors have to be wrong together",
            before="""\
class Together(nn.Module):
    def forward(self, x, y):
        if self.training and (x > 2).any() and (y < 0).any():
            raise ValueError("both")
        return x + y
""",
            after="""\
class Together(nn.Module):
    def forward(self, x, y):
        if torch.compiler.is_compiling():
            if self.training:
                torch._assert_async((~(x > 2).any()) | (~(y < 0).any()), "both")
        elif self.training and (x > 2).any() and (y < 0).any():
            raise ValueError("both")
        return x + y
""",
            run="""\
def make(): return Together().train()
calls = [(torch.ones(2) * a, torch.ones(2) * b) for a, b in ((1, 1), (3, 1), (1, -1), (3, -1))]
""",
        ),
        Example(
            title="tensors that must be equal may differ in shape: reported",
            before="""\
class Equal(nn.Module):
    def forward(self, x, y):
        if not torch.equal(x, y):
            raise ValueError("not the same")
        return x * 2
""",
            after=None,
            run="""\
def make(): return Equal()
calls = [(torch.ones(2), torch.ones(2)), (torch.ones(2), torch.ones(1))]
""",
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="the error is caught",
            source="""\
class Fallback(nn.Module):
    def forward(self, x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            return x.sqrt()
        except ValueError:
            return x
""",
            reported=True,
        ),
        NearMiss(
            title="a caller in this file catches what the function raises",
            source="""\
def root(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x.sqrt()


class Caller(nn.Module):
    def forward(self, x):
        try:
            return root(x)
        except ValueError:
            return x
""",
            reported=True,
        ),
        NearMiss(
            title="a caller of a caller catches it, of a module",
            source="""\
class Root(nn.Module):
    def need(self, x):
        if (x < 0).any():
            raise ValueError("negative")

    def forward(self, x):
        self.need(x)
        return x.sqrt()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.root = Root()

    def forward(self, x):
        try:
            return self.root(x)
        except (ValueError, KeyError):
            return x
""",
            reported=True,
        ),
        NearMiss(
            title="a decorator of this file catches it; a `finally` that returns",
            source="""\
def forgiving(function):
    def tried(self, x):
        try:
            return function(self, x)
        except ValueError:
            return x

    return tried


class Wrapped(nn.Module):
    @forgiving
    def forward(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x.sqrt()


class Finally(nn.Module):
    def forward(self, x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            x = x.sqrt()
        finally:
            return x
""",
            reported=True,
        ),
        NearMiss(
            title="a context manager may catch it",
            source="""\
import contextlib


class Suppressed(nn.Module):
    def forward(self, x):
        with contextlib.suppress(ValueError):
            if (x < 0).any():
                raise ValueError("negative")
            x = x.sqrt()
        return x
""",
            reported=True,
        ),
        NearMiss(
            title="not every path raises",
            source="""\
class Sometimes(nn.Module):
    def forward(self, x, strict: bool = False):
        if (x < 0).any():
            if strict:
                raise ValueError("negative")
            x = x.abs()
        return x.sqrt()
""",
        ),
        NearMiss(
            title="Python values, shapes, and None",
            source="""\
class Shapes(nn.Module):
    def forward(self, x, mask=None):
        if x.shape[-1] % 2 or x.dim() != 2 or (mask is not None and mask.shape != x.shape):
            raise ValueError(f"shape {x.shape}")
        assert x.size(0) > 0, f"empty {x.shape}"
        torch._check(x.size(0) > 0)
        return x
""",
        ),
        NearMiss(
            title="an assertion that Dynamo takes as it is",
            source="""\
class Literal(nn.Module):
    def forward(self, x):
        assert (x > 0).all(), "positive"
        assert x.sum() < 9
        return x
""",
        ),
        NearMiss(
            title="eager code only, and a constructor",
            source="""\
class Eager(nn.Module):
    def __init__(self, scale):
        super().__init__()
        if (scale < 0).any():
            raise ValueError("negative scale")
        self.scale = scale

    def forward(self, x):
        if not torch.compiler.is_compiling() and (x < 0).any():
            raise ValueError("negative")
        return x * self.scale
""",
        ),
        NearMiss(
            title="the second tensor can be looked at only where the first one holds",
            source="""\
class Guarded(nn.Module):
    def forward(self, x, index):
        if (index >= 0).all() and (x[index] < 0).any():
            raise ValueError("negative")
        return x * 2
""",
            reported=True,
        ),
        NearMiss(
            title="a number that a tensor holds with other digits",
            source="""\
class Digits(nn.Module):
    def forward(self, x):
        if x.max().item() > 0.1:
            raise ValueError("large")
        return x * 2
""",
            reported=True,
        ),
        NearMiss(
            title="the test binds a name that is used below",
            source="""\
class Bound(nn.Module):
    def forward(self, x):
        if (top := x.max()) > 3:
            raise ValueError("large")
        return x / top
""",
            reported=True,
        ),
        NearMiss(
            title="the error is the only way out of a loop",
            source="""\
class Endless(nn.Module):
    def forward(self, x):
        while True:
            if x.sum() > 3:
                raise RuntimeError("done")
            x = x + 1
""",
            reported=True,
        ),
        NearMiss(
            title="a number that was read before",
            source="""\
class Earlier(nn.Module):
    def forward(self, x):
        n = x.max().item()
        if n > 3 or x.shape[0] > n:
            raise ValueError("large")
        torch._check(n < x.shape[0])
        return x
""",
        ),
        NearMiss(
            title="an error that steers the program",
            source="""\
class Steps(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            raise StopIteration
        return x + 1


class Halt(Exception):
    pass


class Halts(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            raise Halt
        return x + 1
""",
            reported=True,
        ),
    )


#: Characters of a message, so that its line stays readable.
_LONGEST = 90


class _Writer:
    """Says in new code what a guard demands."""

    def __init__(self, node: ast.If | ast.Assert | ast.Expr, guard: Guard, facts: Facts) -> None:
        self.node = node
        self.guard = guard
        self.torch = (facts.spelled("torch.compiler", node) or "torch.compiler").removesuffix(".compiler")
        self.facts = facts
        self.text = f", {_literal(guard.text or f'check failed: {_text(guard, node)}')}"

    def edits(self) -> tuple[Edit, ...] | str:
        """The edits, or why there are none."""
        node, demands, facts = self.node, self.guard.demands, self.facts
        if facts.spelled("torch._assert_async", node) is None and not facts.importable("torch", node):
            return "`torch` is not imported here, or is another name"
        is_elif = isinstance(node, ast.If) and facts.merging.is_elif(node)
        if not is_elif and not facts.syntax.alone(node):
            return "the line holds more than this statement"
        if (
            isinstance(node, ast.Assert)
            and (node.msg is None or isinstance(node.msg, ast.Constant))
            and all(map(self.splits, demands))
        ):
            self.text = "" if node.msg is None else ", {1}"
            said = () if node.msg is None else (node.msg,)
            lines = (self.line(d) for d in demands)
            return (ReplaceStatements((node,), tuple(Code(c.template, (*c.parts, *said)) for c in lines)),)
        if isinstance(node, ast.If) and any(isinstance(d, Plain) for d in demands):
            return self.beside(node)
        if not isinstance(node, ast.If) or not node.orelse:
            return (Enclose((node,), self.clauses(demands, "\nelse:")),)
        if is_elif:
            return "it is one of several branches"
        return self.apart(node, node.test), Insert(node, (self.clauses(demands),))

    def splits(self, demand: Demand) -> bool:
        """Whether one assertion for ``demand`` says the same, also where it is no tensor, in eager code."""
        return isinstance(demand, Plain) or (
            isinstance(demand, Required) and (demand.truth or self.is_sure(demand.expr))
        )

    def is_sure(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor or an array if it can be evaluated: ``~`` of a Python bool would be true."""
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and not self.facts.qualified(e.func):
            e = e.func.value
            if isinstance(e, ast.Compare):
                return True
        return isinstance(e, ast.Call) and (self.facts.qualified(e.func) or "").startswith("torch.")

    def beside(self, node: ast.If) -> tuple[Edit, ...] | str:
        """A test of Python values stays; the tensors in it are for eager code, and checked below it."""
        data = [v for v in getattr(node.test, "values", ()) if self.facts.guards.reads_data(v)]
        demands = [d for d in self.guard.demands if not isinstance(d, Plain)]
        whole = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or) and not node.orelse
        if not whole or len(data) != len(demands) or self.facts.merging.is_elif(node):
            return "it mixes tensors and Python values"
        return *(self.apart(node, v) for v in data), Insert(node, (self.clauses(demands),), after=True)

    def apart(self, node: ast.If, test: ast.expr) -> Replace:
        """``test`` is for eager code."""
        return Replace(test, Code(f"not {self.torch}.compiler.is_compiling() and {{0}}", (test,)))

    def clauses(self, demands: Iterable[Demand], end: str = "") -> Code:
        """What compiled code does in the place of the guard."""
        made = block(Code(f"if {self.torch}.compiler.is_compiling():"), [self.line(d) for d in demands])
        return Code(made.template + end, made.parts)

    def line(self, demand: Demand) -> Code:
        """The statement that holds ``demand``."""
        match demand:
            case When(tests=tests, then=then):
                test = " and ".join(f"{{{i}}}" if truth else f"not {{{i}}}" for i, (_, truth) in enumerate(tests))
                return block(Code(f"if {test}:", tuple(e for e, _ in tests)), [self.line(d) for d in then])
            case Plain(expr=expr, truth=truth):
                return Code(f"assert {'' if truth else 'not '}{{0}}{self.text}", (expr,))
            case AnyOf(parts=parts):
                holes = " | ".join(f"{{{i}}}" for i in range(len(parts)))
                tensor = Code(holes, tuple(self.tensor(p, whole=False) for p in parts))
                if not parts[0].scalar:
                    tensor = Code("{0}.reshape(())", (tensor,))
            case Required():
                tensor = self.tensor(demand)
        if isinstance(self.node, ast.Assert):
            return Code(f"assert {{0}}{self.text}", (tensor,))
        return Code(f"{self.torch}._assert_async({{0}}{self.text})", (tensor,))

    def tensor(self, part: Required, *, whole: bool = True) -> Code:
        """The tensor with one element that is true where ``part`` holds; as boolean unless that is the ``whole``."""
        match part:
            case Required(expr=ast.Compare(left=a, ops=[op], comparators=[b]), truth=False, scalar=True, stands=()):
                if part.boolean and isinstance(op, (ast.Eq, ast.NotEq)):
                    return Code("{0} != {1}" if isinstance(op, ast.Eq) else "{0} == {1}", (a, b))
        made = Code("{0}", (self.read(part),))
        if part.every:
            return Code("{0}.all()" if part.boolean else "{0}._is_all_true()", (made,))
        if not part.scalar and whole:
            made = Code("{0}.reshape(())", (made,))
        if not part.truth and isinstance(self.node, ast.Assert) and not self.is_sure(part.expr):
            return Code("{0} == 0", (made,))
        if not part.truth:
            return Code("~{0}" if part.boolean else f"{self.torch}.logical_not({{0}})", (made,))
        return made if part.boolean or whole else Code("{0}.bool()", (made,))

    def read(self, part: Required) -> ast.expr | Code:
        """The tensor of ``part``, with nothing in it that reads on the host."""
        call = part.expr
        if isinstance(call, ast.Call) and any(s.suffix == "isclose" for s in part.stands):
            words = [f"{{{i}}}" if k is None else f"{k}={{{i}}}" for i, k in enumerate(_keywords(call))]
            values = (*call.args, *(k.value for k in call.keywords))
            return Code(f"{self.torch}.isclose({', '.join(words)}).all()", values)
        return filled(call, {s.read: Code(f"{{0}}{s.suffix}", (s.tensor,)) for s in part.stands})


def _keywords(call: ast.Call) -> list[str | None]:
    return [*(None for _ in call.args), *(k.arg for k in call.keywords)]


def _text(guard: Guard, node: ast.If | ast.Assert | ast.Expr) -> str:
    first = guard.demands[0]
    shown = first.expr if isinstance(node, ast.Expr) and isinstance(first, Required) else getattr(node, "test", node)
    return ast.unparse(shown)


def _literal(text: str) -> str:
    """``text`` as a string in source code, without braces, which are holes in a template."""
    words = " ".join(text.replace("{", "(").replace("}", ")").split())
    literal = repr(words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}...")
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal
