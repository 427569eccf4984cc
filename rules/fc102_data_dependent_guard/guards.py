"""Statements that only raise when tensor data is not as it has to be, and what has to hold for the code to go on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.checks.errors import error_name, raised, raises, said
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.totality import Effects
from patcher.facts.syntax.written import is_literal
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty, Grade
from patcher.facts.values.types import INT64, Category, Kind, Value
from rules.fc102_data_dependent_guard.flagged import Flagged

#: Functions that decide something about tensors on the host.
_HOST_TESTS = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero"})
#: Check function -> positions of the condition and of the message.
_CHECKS = {
    "torch._check": (0, 1),
    "torch._check_value": (0, 1),
    "torch._check_index": (0, 1),
    "torch._check_type": (0, 1),
    "torch._check_not_implemented": (0, 1),
    "torch._check_with": (1, 2),
    "torch._check_tensor_all": (0, 1),
    "torch._check_tensor_all_with": (1, 2),
}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


@dataclass(frozen=True)
class Stand:
    """``tensor`` followed by ``suffix`` is as a tensor what ``read`` gives on the host."""

    read: ast.expr
    tensor: ast.expr
    suffix: str


@dataclass(frozen=True)
class Required:
    """``expr``, a tensor, has to be ``truth``; of ``every`` element, where it may have several.

    ``boolean``, ``scalar``: whether dtype bool and rank 0 are known. ``stands``: what to write for what in it reads a
    tensor on the host. ``sure``: it is a tensor, and no array or number of somebody who calls in another way.
    """

    expr: ast.expr
    truth: bool
    boolean: bool = False
    scalar: bool = False
    every: bool = False
    stands: tuple[Stand, ...] = ()
    sure: bool = True


@dataclass(frozen=True)
class AnyOf:
    """At least one of ``parts`` has to hold; all of them can be evaluated at any time."""

    parts: tuple[Required, ...]


@dataclass(frozen=True)
class Plain:
    """``expr``, a Python value, has to be ``truth``."""

    expr: ast.expr
    truth: bool


@dataclass(frozen=True)
class When:
    """``then`` has to hold where every test, a Python value, is the truth beside it."""

    tests: tuple[tuple[ast.expr, bool], ...]
    then: tuple[Demand, ...]


Demand = Required | AnyOf | Plain | When


@dataclass(frozen=True)
class Guard:
    """What a statement demands, in order, and what it says when that does not hold, as `errors.said` has it.

    ``documented``: what somebody may rely on, who reads that this error is raised; "" when nobody says so.
    """

    demands: tuple[Demand, ...]
    texts: tuple[str, ...]
    documented: str = ""


class Guards(Analysis):
    """Guards of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.conditions = facts.ask(Conditions)
        self.caught = facts.ask(Caught)
        self.certainty = facts.ask(Certainty)
        self.flagged = facts.ask(Flagged)
        self._known: dict[ast.stmt, Guard | str | None] = {}

    def of(self, statement: ast.stmt) -> Guard | str | None:
        """The guard that ``statement`` is, why it cannot be taken apart, or None when it is no guard on tensor data."""
        if statement not in self._known:
            self._known[statement] = self._of(statement)
        return self._known[statement]

    def _of(self, statement: ast.stmt) -> Guard | str | None:
        match statement:
            case ast.If(test=test, body=body) if raises(body) and self.reads_data(test):
                errors = raised(body)
                names = [error_name(e) for e in errors]
                first = errors[0].args[0] if isinstance(errors[0], ast.Call) and errors[0].args else None
                return self._guard(statement, test, False, said(first), names)
            case ast.Assert(test=test, msg=message) if self.reads_data(test):
                if (message is None or is_literal(message)) and self._is_plain(test):
                    return None
                return self._guard(statement, test, True, said(message), ["AssertionError"])
            case ast.Expr(value=ast.Call() as call) if self.syntax.qualified(call.func) in _CHECKS:
                return self._check(statement, call)
        return None

    def reads_data(self, test: ast.expr) -> bool:
        """Whether deciding ``test`` in compiled code reads tensor data on the host."""
        if any(map(self._is_host_test, ast.walk(test))) or self._reads_flagged(test):
            return True
        return self.conditions.reads_data(test) and self._reads_here(test)

    def _reads_flagged(self, e: ast.expr) -> bool:
        """Whether deciding ``e`` in compiled code asks for what a name holds that may be a tensor behind flags."""
        match e:
            case ast.BoolOp(op=op, values=values):
                for v in values:
                    if self._reads_flagged(v):
                        return True
                    if self.facts.eager_tests.ends_compiled(v, op):
                        return False
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._reads_flagged(operand)
        return self.flagged.tensor(e) is not None

    def _reads_here(self, e: ast.expr) -> bool:
        """Whether evaluating ``e`` as a truth value reads a tensor, rather than a number that was read before."""
        parts = [n for n in ast.iter_child_nodes(e) if isinstance(n, ast.expr)]
        if isinstance(e, (ast.BoolOp, ast.UnaryOp)):
            return any(map(self._reads_here, parts))
        if self.inference.of(e).is_tensor:
            return True
        if isinstance(e, ast.Call):
            receiver = [e.func.value] if isinstance(e.func, ast.Attribute) else []
            if any(self.inference.of(a).is_tensor for a in [*receiver, *e.args]):
                return self.inference.of(e).data
            parts += receiver
        return any(self._reads_here(p) for p in parts if not self.inference.of(p).is_tensor)

    def _is_host_test(self, e: ast.AST) -> bool:
        return isinstance(e, ast.Call) and self.syntax.qualified(e.func) in _HOST_TESTS

    def _is_plain(self, test: ast.expr) -> bool:
        """Whether ``test`` is one tensor: Dynamo makes an assertion in the graph of that."""
        return self.inference.of(test).is_tensor

    def _check(self, statement: ast.stmt, call: ast.Call) -> Guard | str | None:
        what = self.syntax.qualified(call.func) or ""
        at, message_at = _CHECKS[what]
        given = {k.arg: k.value for k in call.keywords}
        if any(isinstance(a, ast.Starred) for a in call.args) or not given.keys() <= {"cond", "message", "error_type"}:
            return None
        condition = call.args[at] if len(call.args) > at else given.get("cond")
        message = call.args[message_at] if len(call.args) > message_at else given.get("message")
        if condition is None or self._after_compiled(statement):
            return None
        names = ["RuntimeError"] if at == 0 else [error_name(call.args[0])] if call.args else []
        if "tensor_all" in what:
            if _binds(condition):
                return "the test binds a name"
            if (caught := self.caught.why(statement, names, around=True)) is not None:
                return caught
            return Guard(
                (Required(condition, True, boolean=self.inference.of(condition).is_boolean, every=True),),
                said(message),
            )
        value = self.inference.of(condition)
        if value.is_tensor or not self.reads_data(condition):  # a tensor is an error there
            return None
        return self._guard(statement, condition, True, said(message), names)

    def is_for_compiling(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` stands under a test that asks whether code is compiled: that is what it is for."""
        child: ast.AST = statement
        for parent in self.syntax.ancestors(statement):
            if isinstance(parent, ast.If) and child in parent.body and self._asks_for_compiling(parent.test, 4):
                return True
            child = parent
        return False

    def _after_compiled(self, statement: ast.stmt) -> bool:
        """Whether compiled code has left the function above ``statement``, for all that the test there says."""
        around = [statement, *self.syntax.ancestors(statement)]
        for s in around[: around.index(self.syntax.function_of(statement) or around[-1])]:
            block = self.syntax.block_of(s) if isinstance(s, ast.stmt) else []
            for above in block[: block.index(s)] if isinstance(s, ast.stmt) else ():
                leaves = isinstance(above, ast.If) and isinstance(above.body[-1], (ast.Return, ast.Raise))
                if isinstance(above, ast.If) and leaves and self._asks_for_compiling(above.test, 4):
                    return True
        return False

    def _asks_for_compiling(self, test: ast.expr, depth: int) -> bool:
        """Whether ``test`` calls, also through functions of this module, what tells whether code is compiled."""
        for n in ast.walk(test):
            what = self.syntax.qualified(n.func) if isinstance(n, ast.Call) else None
            if what in api.EAGER_GUARDS:
                return True
            name = n.func.id if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and depth else None
            for f in self.syntax.tree.body if name is not None else ():
                inner = f.body if isinstance(f, ast.FunctionDef) and f.name == name else []
                if any(self._asks_for_compiling(e, depth - 1) for s in inner for e in _expressions(s)):
                    return True
        return False

    def _guard(
        self, statement: ast.stmt, test: ast.expr, truth: bool, texts: tuple[str, ...], names: list[str]
    ) -> Guard | str:
        if _binds(test):
            return "the test binds a name"
        demands = self._demands(test, truth)
        if isinstance(demands, str):
            return demands
        reason = self.caught.why(statement, names, around=True, signals=False)
        return Guard(demands, texts, self._relied_on(statement, names)) if reason is None else reason

    def _relied_on(self, statement: ast.stmt, names: list[str]) -> str:
        if signal := self.caught.signal(names):
            return f"nobody catches `{signal}`, which is no error by its name: compiled code raises another error"
        return self.caught.relied_on(statement, names)

    # --- taking a test apart ----------------------------------------------------------------------------------------

    def _demands(self, test: ast.expr, truth: bool) -> tuple[Demand, ...] | str:
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._demands(operand, not truth)
            case ast.BoolOp(op=op, values=values) if self.reads_data(test):
                return self._all(values, truth) if isinstance(op, ast.And) is truth else self._any(values, truth)
            case ast.Call(args=[argument], keywords=[]) if self.syntax.builtin(test) == "bool":
                return self._demands(argument, truth)
        if not self.reads_data(test):
            return (Plain(test, truth),)
        required = self._required(test, truth)
        return required if isinstance(required, str) else (required,)

    def _all(self, values: list[ast.expr], truth: bool) -> tuple[Demand, ...] | str:
        """Each of ``values`` has to be ``truth``, which is when Python looks at all of them."""
        found: list[Demand] = []
        for v in values:
            demands = self._demands(v, truth)
            if isinstance(demands, str):
                return demands
            found += demands
        asked = {name for v in values for name in self._asked_for_tensors(v)}
        for v in (d.expr for d in found if isinstance(d, Plain)):
            if isinstance(v, ast.Compare) and isinstance(v.ops[0], _ORDER) and asked & set(_operands(v)):
                return f"`{ast.unparse(v)}` reads the tensor on the host, where it is one"
        return tuple(found)

    def _asked_for_tensors(self, test: ast.expr) -> Iterator[str]:
        """The names that ``test`` asks whether they are tensors."""
        for n in ast.walk(test):
            match n:
                case ast.Call(args=[ast.Name(id=name), kinds]) if self.syntax.builtin(n) == "isinstance":
                    if any(self.syntax.qualified(k) == "torch.Tensor" for k in ast.walk(kinds)):
                        yield name

    def _any(self, values: list[ast.expr], truth: bool) -> tuple[Demand, ...] | str:
        """One of ``values`` has to be ``truth``: Python stops looking there."""
        data = [v for v in values if self.reads_data(v)]
        first = values.index(data[0])
        tests = [v for v in values if v not in data]
        for v in values[first:]:
            if v in tests and (self.inference.of(v).kind is not Kind.PYTHON or self.effects.why_not_total(v)):
                return f"`{ast.unparse(v)}` would be evaluated before the tensor"
        demands: tuple[Demand, ...] | str
        if len(data) == 1:
            demands = self._demands(data[0], truth)
            if len(values) - 1 > first and (reason := self.effects.why_not_total(data[0])) is not None:
                return reason
        else:
            parts: list[Required] = []
            late = any(v in tests for v in values[first:])
            for v in data:
                inner = self._demands(v, truth)
                if isinstance(inner, str):
                    return inner
                part = inner[0]
                if len(inner) > 1 or not isinstance(part, Required):
                    return f"`{ast.unparse(v)}` is more than one tensor"
                if v is not data[0] or late:
                    if (reason := self.effects.why_not_total(part.expr)) is not None:
                        return reason
                    if not part.scalar:
                        return f"`{ast.unparse(part.expr)}` may have several elements"
                parts.append(part)
            demands = (AnyOf(tuple(parts)),)
        if isinstance(demands, str) or not tests:
            return demands
        return (When(tuple((v, not truth) for v in tests), demands),)

    def _required(self, test: ast.expr, truth: bool) -> Required | str:
        if (tensor := self.flagged.tensor(test)) is not None:
            return Required(test, truth, scalar=self.inference.of(tensor).is_scalar_tensor, sure=False)
        value = self.inference.of(test)
        if value.is_tensor and not self.certainty.is_used(test):
            return f"`{ast.unparse(test)}` may be a Python value, or an array"
        if value.is_tensor:
            return self._held(test, value, truth)
        match test:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
                held = self.inference.of(tensor)
                if held.is_tensor and self.certainty.is_used(tensor):
                    return self._held(tensor, held, truth)
            case ast.Call(func=func) if self.syntax.qualified(func) == "torch.is_nonzero" and len(test.args) == 1:
                held = self.inference.of(test.args[0])
                if held.is_tensor:
                    return self._held(test.args[0], held, truth)
            case ast.Call(func=ast.Attribute() as func) if self.syntax.qualified(func) == "torch.allclose":
                return Required(test, truth, True, True, stands=(Stand(test, test, "isclose"),))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _ORDER):
                return self._compared(test, left, right, truth)
        return f"`{ast.unparse(test)}` reads the tensor on the host"

    def _held(self, e: ast.expr, value: Value, truth: bool) -> Required:
        """``e``, a tensor as far as can be seen, has to be ``truth``."""
        sure = self.certainty.of(e) is Grade.CERTAIN
        return Required(e, truth, value.is_boolean, value.is_scalar_tensor, sure=sure)

    def _compared(self, test: ast.Compare, left: ast.expr, right: ast.expr, truth: bool) -> Required | str:
        """A comparison with a number that is read: it is made with tensors, without losing a digit."""
        tensors = [self._read(side) for side in (left, right)]
        if not all(self.certainty.is_used(t) for t in tensors if t is not None):
            return f"`{ast.unparse(test)}` may compare what is no tensor"
        held = [self.inference.of(t) for t in tensors if t is not None]
        numbers = [self.inference.of(s) for s, t in zip((left, right), tensors, strict=True) if t is None]
        categories = {v.dtype.category if v.is_tensor and v.dtype is not None else None for v in held}
        known = not any(n.data for n in numbers)
        if known and categories == {Category.INT} and all(n.python in ("int", "size") for n in numbers):
            suffixes = ["" if v.dtype is not None and v.dtype.same(INT64) else ".long()" for v in held]
        elif known and all(v.is_tensor for v in held) and all(_is_exact(n.constant) for n in numbers) and numbers:
            suffixes = [""]
        else:
            return f"`{ast.unparse(test)}` reads the tensor on the host"
        reads = [(s, t) for s, t in zip((left, right), tensors, strict=True) if t is not None]
        stands = tuple(Stand(s, t, suffix) for (s, t), suffix in zip(reads, suffixes, strict=True))
        return Required(test, truth, True, all(v.is_scalar_tensor for v in held), stands=stands)

    def _read(self, e: ast.expr) -> ast.expr | None:
        """The tensor whose only number ``e`` is, as a Python number of the same kind."""
        match e:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
                return tensor
            case ast.Call(func=ast.Name(id="int" | "float" as name) as func, args=[tensor], keywords=[]):
                dtype = self.inference.of(tensor).dtype if self.syntax.is_builtin(func) else None
                category = dtype.category if dtype is not None else None
                return tensor if (name, category) in (("int", Category.INT), ("float", Category.FLOAT)) else None
        return None


def _is_exact(number: object) -> bool:
    """Whether every dtype of PyTorch holds ``number`` as it is, so that comparing with it loses nothing.

    There is no ``.double()`` on every device that would do for the others.
    """
    return isinstance(number, (int, float)) and 0 <= number <= 127 and float(number).is_integer()


def _expressions(s: ast.stmt) -> list[ast.expr]:
    return [n for n in ast.iter_child_nodes(s) if isinstance(n, ast.expr)] + [
        e for n in ast.iter_child_nodes(s) if isinstance(n, ast.stmt) for e in _expressions(n)
    ]


def _operands(test: ast.Compare) -> Iterator[str]:
    return (side.id for side in (test.left, *test.comparators) if isinstance(side, ast.Name))


def _binds(e: ast.expr) -> bool:
    return any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(e))
