"""What a rule is, and what it yields: findings whose fixes are templates over the source's own expressions."""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from patcher.settings import Extent, TorchSetting, Varied

if TYPE_CHECKING:
    from patcher.facts import Facts


#: What a pattern costs, in the words of the report of a diagnosis.
Cost = Literal["graph break", "recompilation", "dynamic shape", "CUDA graphs"]

_HOLE = re.compile(r"\{(\d+)\}")
#: Codes and names of rules of earlier versions.
_REMOVED = (
    *("FC104", "break-in-loop", "FC203", "tensor-held-size", "FC209", "longest-slice", "FC307", "cache-made-per-call"),
    *("FC504", "size-keyed-cache", "FC607", "pickled-keywords", "FC608", "sorted-items", "FC610", "drawn-rate"),
)


def removed(word: str) -> str:
    """Return " (it was removed)" for the code or name of a rule that is gone, else ""."""
    return " (it was removed)" if {word.upper(), word.lower()} & {*_REMOVED} else ""


class Applicability(enum.Enum):
    """How far a fix may be trusted.

    ``SAFE``: the patched code equals the original on every input on which the original returns.
    ``UNSAFE``: it does so only under the finding's ``assumption``. ``DISPLAY``: there is no fix.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display-only"


#: What an assumption says that rests on answers which changed inputs have given.
BOTH_SEEN = "a run has seen both"


@dataclass(frozen=True)
class Code:
    """Source text with holes: ``{0}``, ``{1}`` ... stand for ``parts``, which are copied from the source verbatim.

    A part that binds less tightly than its hole asks for is put in parentheses. Literal braces are doubled.
    """

    template: str
    parts: tuple[ast.expr | Code, ...] = ()


def block(header: Code, lines: Sequence[Code]) -> Code:
    """A compound statement: ``header`` (with its colon) and ``lines`` indented below it."""
    return stacked(header, *lines, indent="    ")


def stacked(first: Code, *others: Code, indent: str = "") -> Code:
    """``others`` below ``first``, indented by ``indent``."""
    template, parts = first.template, list(first.parts)
    for line in others:
        shift = len(parts)
        shifted = _HOLE.sub(lambda hole, shift=shift: f"{{{int(hole[1]) + shift}}}", line.template)  # type: ignore[misc]
        template += "".join(f"\n{indent}{text}" for text in shifted.split("\n"))
        parts += line.parts
    return Code(template, tuple(parts))


def filled(expr: ast.expr, replaced: Mapping[ast.AST, Code]) -> ast.expr | Code:
    """``expr`` with the expressions in it that are keys of ``replaced`` written as those say, the outermost first."""
    return respelled(expr, replaced) if any(n in replaced for n in ast.walk(expr)) else expr


def respelled(expr: ast.expr, replaced: Mapping[ast.AST, Code]) -> Code:
    """As `filled`, with all that is not replaced spelled as ``ast.unparse`` does: for code that is there twice."""
    parts: list[Code] = []

    def rebuilt(node: ast.AST) -> ast.AST:
        if node in replaced:
            parts.append(replaced[node])
            return ast.Name(f"__hole_{len(parts) - 1}__", ast.Load())
        fields = {
            name: [rebuilt(item) if isinstance(item, ast.AST) else item for item in value]
            if isinstance(value, list)
            else rebuilt(value)
            if isinstance(value, ast.AST)
            else value
            for name, value in ast.iter_fields(node)
        }
        return type(node)(**fields)

    spelled = ast.unparse(ast.fix_missing_locations(rebuilt(expr)))
    template = spelled.replace("{", "{{").replace("}", "}}")
    return Code(re.sub(r"__hole_(\d+)__", r"{\1}", template), tuple(parts))


@dataclass(frozen=True)
class Replace:
    """Put ``code`` (an expression) in the place of the expression ``target``."""

    target: ast.expr
    code: Code


@dataclass(frozen=True)
class ReplaceStatements:
    """Put ``code`` (statements) in the place of ``targets``, which are neighbours in one block."""

    targets: tuple[ast.stmt, ...]
    code: tuple[Code, ...]


@dataclass(frozen=True)
class Insert:
    """Add statements before or after ``anchor``, in the same block."""

    anchor: ast.stmt
    code: tuple[Code, ...]
    after: bool = False


@dataclass(frozen=True)
class Decorate:
    """Put ``@code`` directly above the ``def`` line, below any decorator that is there."""

    target: ast.FunctionDef | ast.AsyncFunctionDef
    code: Code


@dataclass(frozen=True)
class MoveTail:
    """Move the statements of ``target`` from ``first`` on, as they are, into a new function directly below it.

    ``header``: the ``def`` line of that function, with its colon, below its decorators. ``code``: the statement that
    comes in their place. With ``last``, only the statements up to that one move, and ``result`` comes below them.
    """

    target: ast.FunctionDef
    first: ast.stmt
    header: Code
    code: Code
    last: ast.stmt | None = None
    result: Code | None = None


@dataclass(frozen=True)
class Enclose:
    """Put ``targets``, neighbours in one block, as they are, into a clause of an ``if`` that is new.

    ``code``: that ``if``, whose last clause ends with its colon. An ``if`` that comes alone into an ``else`` makes that
    an ``elif``.
    """

    targets: tuple[ast.stmt, ...]
    code: Code


@dataclass(frozen=True)
class NameArms:
    """Make the arms of ``target``, an ``if`` without ``elif``, as they are, functions in its place, above ``code``.

    ``headers``: their ``def`` lines, with the colon. ``results``: the last statement of each.
    """

    target: ast.If
    headers: tuple[Code, ...]
    results: tuple[Code, ...]
    code: tuple[Code, ...]


Edit = Replace | ReplaceStatements | Insert | Decorate | MoveTail | Enclose | NameArms


@dataclass(frozen=True)
class Fix:
    """Edits that are made together or not at all.

    New code may say ``torch`` and ``math``: the engine imports them where they are not, and refuses the fix where that
    cannot be done.
    ``last``: it is made when nothing else is left to fix, which may make it superfluous. ``only_break``: it gains
    nothing where something else in the same function breaks the graph whenever this does, and stays; ``only_loop``:
    where that stands in a loop, for then the function runs eagerly as a whole. ``asserts``: what its new code calls
    asserts on the device, which is known by itself only where the code says so.
    """

    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE
    last: bool = False
    only_break: bool = False
    only_loop: bool = False
    asserts: bool = False


@dataclass(frozen=True)
class Finding:
    """One place that keeps code from compiling well, and, where there is a proof, its repair.

    ``assumption`` says what an unsafe fix takes for granted, or why there is no fix. ``strategy`` names the strategy
    that the fix follows, for rules that have several.
    """

    node: ast.AST
    message: str
    fix: Fix | None = None
    assumption: str = ""
    strategy: str = ""

    @property
    def applicability(self) -> Applicability:
        """Safe, unsafe or display-only."""
        return self.fix.applicability if self.fix else Applicability.DISPLAY


@dataclass(frozen=True)
class Example:
    """A source that a rule reports, what it becomes, and how both are run.

    ``before`` and ``after`` start below ``import torch``, ``import torch.nn as nn`` and
    ``import torch.nn.functional as F``.
    ``run`` defines ``make()`` (a module or function), ``calls`` (a list of argument tuples, or functions of what
    ``make`` returned) and optionally ``train = True`` (gradients are compared, Dynamo runs on ``aot_eager``) and
    ``hook(obj, backend)``, which does the compiling and returns what to call. ``evidence``: what a run has shown of
    ``before``, the path of which is "", as of ``extents``; ``torch_settings``: of PyTorch, that it has shown to help.
    ``after=None``: reported, not rewritten. ``gain=False``: the rewrite is for a cost that this run cannot show.
    ``compiles``: the source asks for compiling by itself, so that to come to no graph at all is the worst of costs.
    ``raises``: each call of it raises, and none of what it becomes does. ``tolerance``: how far outputs and gradients
    may be off, relative and absolute, where the fix is unsafe because it rounds in another way.
    """

    before: str
    after: str | None
    run: str
    title: str
    gain: bool = True
    unsafe: bool = False
    strategies: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Varied, ...] = ()
    extents: tuple[Extent, ...] = ()
    torch_settings: tuple[TorchSetting, ...] = ()
    compiles: bool = False
    raises: bool = False
    tolerance: float = 0.0

    def cost(self, figures: Mapping[str, int]) -> tuple[int, int, int]:
        """Of one run, by its figures; smaller is better. What runs eagerly for good comes first: it hides the rest."""
        asleep = int(self.compiles and not figures["graphs"])
        given_up = asleep + figures["limit_hits"] + figures["dropped_frames"]
        return (given_up, figures["breaks"] + figures["recompiles"], figures["graphs"])


@dataclass(frozen=True)
class NearMiss:
    """A source that looks like the pattern and has to stay. ``reported``: display-only findings are fine.

    ``instead``: with unsafe fixes it is rewritten in another way that the rule has, and the new code says this.
    ``evidence``, ``extents``, ``torch_settings``: as an `Example` has them.
    """

    source: str
    title: str
    reported: bool = False
    evidence: tuple[Varied, ...] = ()
    extents: tuple[Extent, ...] = ()
    torch_settings: tuple[TorchSetting, ...] = ()
    instead: str = ""


class Where(enum.Enum):
    """Which nodes a rule is asked about.

    ``COMPILED``: those that run in compiled code, as far as can be told. ``ANYWHERE``: all; the rule asks by itself.
    """

    COMPILED = "compiled"
    ANYWHERE = "anywhere"


@runtime_checkable
class Rule(Protocol):
    """One pattern. A rule holds no state; its docstring has the headings that the documentation is made of.

    ``fixed_in``: the version of PyTorch from which on the pattern does no harm. ``removed_by``: the settings of PyTorch
    with which it does none, all of them. ``costs``: what a run may show of it.
    ``where``: the nodes it is asked about. ``yields_to``: the codes of rules that come first: it is not asked about
    what one of them handles. ``counts_on``: the codes of rules that decide, by taking part in a run, what it may do.
    ``needs_extents``: it is silent until a run has shown how much stands under a function. ``switch``: its name in
    ``[tool.fix-compile.fusions]``, for a rule that is off unless it is switched on there or selected.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    triggers: ClassVar[tuple[bytes, ...]]
    listens_to: ClassVar[tuple[type[ast.AST], ...]]
    invalid: ClassVar[tuple[Example, ...]]
    valid: ClassVar[tuple[NearMiss, ...]]
    fixed_in: ClassVar[tuple[int, int] | None] = None
    removed_by: ClassVar[tuple[str, ...]] = ()
    costs: ClassVar[tuple[Cost, ...]]
    where: ClassVar[Where] = Where.COMPILED
    yields_to: ClassVar[tuple[str, ...]] = ()
    counts_on: ClassVar[tuple[str, ...]] = ()
    needs_extents: ClassVar[bool] = False
    switch: ClassVar[str] = ""

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule, where it takes part in a run, answers for ``node``, and those that yield to it do not."""
        return False

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Yield what is wrong at ``node``, which is one of ``listens_to``."""
        ...
