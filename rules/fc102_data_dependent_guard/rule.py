"""FC102: a check of tensor data that raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts import Facts
from patcher.facts.checks.errors import literal
from patcher.facts.running.frequency import Frequency, Often
from patcher.facts.syntax.written import is_literal
from patcher.rule import Applicability, Code, Edit, Enclose, Finding, Fix, ReplaceStatements, Rule, Where, block, filled
from rules.fc102_data_dependent_guard.examples import INVALID, VALID
from rules.fc102_data_dependent_guard.guards import AnyOf, Demand, Guard, Guards, Plain, Required, When
from rules.fc102_data_dependent_guard.lasting import Lasting


class DataDependentGuard(Rule):
    """An ``if`` on tensor data that only raises, an ``assert`` with a message of its own, ``torch._check_tensor_all``.

    What it does:
        Compiled code (``torch.compiler.is_compiling()``) checks the same with ``torch._assert_async``, which is part of
        the graph; in eager code everything stays as it is. The Python part of a test (``labels is not None and ...``)
        stays a Python test. A name for a tensor behind flags of the module (``full = self.strict and mask.all()``,
        below it ``if not full``) is asserted as what it holds. An ``assert`` becomes one or more that Dynamo puts into
        the graph: of one tensor each, with a fixed message.

    Why it breaks compilation:
        The test needs the tensor's value while Dynamo is tracing, before there is one. ``torch._check_tensor_all`` and
        ``torch._check`` of an ``.item()`` read it as well. The graph breaks there, and inside of a loop the whole frame
        is dropped. ``assert`` of a tensor is fine when its message is a literal; an f-string, ``not``, ``and``, ``or``
        and ``.item()`` break the graph.

    Fix safety:
        Safe. What passed still passes, with the same values; what raised still raises, but compiled code raises a
        ``RuntimeError`` with the constant part of the message, and later. On a GPU it is a device-side assertion: the
        error shows at the next synchronisation, what follows the check may run before it, and the process cannot go on
        with that GPU. A condition that may be a number or an array for some caller is made a tensor; one that is not
        known to have rank 0 is reshaped to ``()``, which raises for several, as ``if`` does. Tensors that Python would
        not look at (after ``and``) are looked at only when that cannot fail. Numbers that ``.item()`` gave are compared
        as tensors only where no digit is lost.

        Unsafe where something would be found in another state after the error: its function, or one of the same file
        that calls it, sets an attribute above it, or writes in place into a tensor that others hold; the code before
        the ``raise``, or in its message, changes what others see; a ``finally`` or a context manager notes the error.
        Unsafe as well where the error is a class of the project's own and none by its name, and where a docstring tells
        of it (``Raises:``).

        Not fixed where something may catch the error, in this file, in another one of the project or in one around it
        (a caller outside of compiled code that takes whatever error there is, or a ``RuntimeError`` where that is what
        the check raises, takes this one as well); where the error is one that Python takes (``StopIteration``); where
        the ``if`` has other branches or raises for a Python reason as well; and where a flag that is off by default
        asks for the check.

    References:
        ``torch._assert_async``; PyTorch, "Data-dependent control flow" (graph break GB0170). The check function of
        transformers 5, which 33 of 221 architectures go through.
    """

    code = "FC102"
    name = "data-dependent-guard"
    triggers = (b"raise ", b"assert ", b"assert(", b"_check")
    listens_to = (ast.If, ast.Assert, ast.Expr)
    where = Where.ANYWHERE
    costs = ("graph break",)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` only raises for some tensor data."""
        return isinstance(node, ast.stmt) and facts.ask(Guards).of(node) is not None

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it only raises for some tensor data, in code that gets compiled."""
        assert isinstance(node, (ast.If, ast.Assert, ast.Expr))
        if facts.eager_only(node) or not (facts.reached(node) or facts.ask(Guards).is_for_compiling(node)):
            return
        guard = facts.ask(Guards).of(node)
        if guard is None:
            return
        message = "a check of tensor data that raises breaks the graph"
        reach = facts.ask(Frequency).of(node)
        if reach.often is Often.FLAG:
            yield Finding(node, message, assumption=f"it runs {reach}")
            return
        edits = guard if isinstance(guard, str) else _Writer(node, guard, facts).edits()
        if isinstance(edits, str):
            yield Finding(node, message, assumption=edits)
            return
        relied_on = guard.documented if isinstance(guard, Guard) else ""
        if lasts := facts.ask(Lasting).why(node):
            ended = f"nobody goes on after the error: {lasts}"
            relied_on = f"{relied_on}; {ended}" if relied_on else ended
        yield Finding(node, message, Fix(edits, Applicability.UNSAFE if relied_on else Applicability.SAFE), relied_on)

    invalid = INVALID
    valid = VALID


class _Writer:
    """Says in new code what a guard demands."""

    def __init__(self, node: ast.If | ast.Assert | ast.Expr, guard: Guard, facts: Facts) -> None:
        self.node = node
        self.guard = guard
        self.torch = facts.writing.spelling("torch", node)
        self.facts = facts
        self.said = ""

    def edits(self) -> tuple[Edit, ...] | str:
        """The edits, or why there are none."""
        node, demands, facts = self.node, self.guard.demands, self.facts
        if not (isinstance(node, ast.If) and facts.syntax.is_elif(node)) and not facts.syntax.alone(node):
            return "the line holds more than this statement"
        if (
            isinstance(node, ast.Assert)
            and (node.msg is None or is_literal(node.msg))
            and all(map(self.splits, demands))
        ):
            self.said = "" if node.msg is None else ", {1}"
            said = () if node.msg is None else (node.msg,)
            lines = (self.line(d, self.said) for d in demands)
            return (ReplaceStatements((node,), tuple(Code(c.template, (*c.parts, *said)) for c in lines)),)
        if not getattr(node, "orelse", ()) and facts.compiled_only(node):
            return (ReplaceStatements((node,), tuple(map(self.line, demands))),)
        if isinstance(node, ast.If) and node.orelse:
            return "it is one of several branches"
        if isinstance(node, ast.If) and any(isinstance(d, Plain) for d in demands):
            return "it mixes tensors and Python values"
        return (Enclose((node,), self.clauses(demands, "\nelse:")),)

    def splits(self, demand: Demand) -> bool:
        """Whether one assertion for ``demand`` says the same, also where it is no tensor, in eager code."""
        return isinstance(demand, Plain) or (
            isinstance(demand, Required) and (demand.truth or self.is_sure(demand.expr))
        )

    def is_sure(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor or an array if it can be evaluated: ``~`` of a Python bool would be true."""
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and not self.facts.syntax.qualified(e.func):
            e = e.func.value
            if isinstance(e, ast.Compare):
                return True
        return isinstance(e, ast.Call) and (self.facts.syntax.qualified(e.func) or "").startswith("torch.")

    def clauses(self, demands: Iterable[Demand], end: str = "") -> Code:
        """What compiled code does in the place of the guard."""
        made = block(Code(f"if {self.torch}.compiler.is_compiling():"), [self.line(d) for d in demands])
        return Code(made.template + end, made.parts)

    def line(self, demand: Demand, said: str | None = None) -> Code:
        """The statement that holds ``demand``; with ``said``, else what the guard says and there is room for."""
        match demand:
            case When(tests=tests, then=then):
                test = " and ".join(f"{{{i}}}" if truth else f"not {{{i}}}" for i, (_, truth) in enumerate(tests))
                return block(Code(f"if {test}:", tuple(e for e, _ in tests)), [self.line(d, said) for d in then])
            case Plain(expr=expr, truth=truth):
                text = ast.unparse(expr)
                return Code(f"assert {'' if truth else 'not '}{{0}}{self.text(text, said)}", (expr,))
            case AnyOf(parts=parts):
                holes = " | ".join(f"{{{i}}}" for i in range(len(parts)))
                tensor = Code(holes, tuple(self.tensor(p, whole=False) for p in parts))
                if not parts[0].scalar:
                    tensor = Code("{0}.reshape(())", (tensor,))
            case Required():
                tensor = self.tensor(demand)
        if isinstance(self.node, ast.Assert):
            return Code(f"assert {{0}}{self.text(_spelled(tensor), said)}", (tensor,))
        return Code(f"{self.torch}._assert_async({{0}}{self.text('', said)})", (tensor,))

    def text(self, test: str, said: str | None) -> str:
        """The message behind ``test``: the longest part that is said in any case and fits on the line, or none.

        An assertion stays on one line; what a function is given has a line of its own when it needs one.
        """
        if said is not None:
            return said
        indent = self.node.col_offset + 8
        room = self.facts.line_length - indent - (len(f"assert {test}, ") - 4 if test else 1)
        failed = () if isinstance(self.node, ast.Assert) else (f"check failed: {_text(self.guard, self.node)}",)
        literals = map(literal, (*self.guard.texts, *failed))
        return next((f", {literal}" for literal in literals if len(literal) <= room), "")

    def tensor(self, part: Required, *, whole: bool = True) -> Code:
        """The tensor with one element that is true where ``part`` holds; as boolean unless that is the ``whole``."""
        match part:
            case Required(expr=ast.Compare(left=a, ops=[op], comparators=[b]), truth=False, scalar=True, stands=()):
                if part.boolean and isinstance(op, (ast.Eq, ast.NotEq)):
                    compared = "{0} != {1}" if isinstance(op, ast.Eq) else "{0} == {1}"
                    plain = part.sure or isinstance(self.node, ast.Assert)
                    return Code(compared if plain else f"{self.torch}.as_tensor({compared})", (a, b))
        made = Code("{0}", (self.read(part),))
        if not part.sure and not isinstance(self.node, ast.Assert):
            made = Code(f"{self.torch}.as_tensor({{0}})", (made,))
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


def _spelled(code: Code) -> str:
    """``code`` as it will be written, on one line."""
    parts = [_spelled(p) if isinstance(p, Code) else ast.unparse(p) for p in code.parts]
    return code.template.format(*parts)
