"""Statements of a function that may go into one of their own: what they need from above, and what is read below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import all_parameters, defaults, is_stored
from patcher.facts.tables import torch_api as api

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_SCOPED = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)
#: A decorator that leaves the function as it is, and says something about all that it calls as well.
_HARMLESS = frozenset({*api.GRAD_OFF, "torch.enable_grad", "torch.autocast", "torch.amp.autocast", "typing.override"})
#: What a ``def`` line has beside its names: the keyword, brackets, the arrow and the colon.
_AROUND = len("def () -> :")
#: Packages whose decorators do something before and after, and call what they decorate.
_WRAPPERS = ("transformers.",)


@dataclass(frozen=True)
class Handed:
    """A value that the statements need. ``annotation``, ``default``: as the function has them, for a parameter."""

    name: str
    annotation: ast.expr | None = None
    default: ast.expr | None = None


@dataclass(frozen=True)
class Cut:
    """``first``: the first of the statements; ``last``: the last one, None for the end of the function.

    ``handed``: what they need, in order. ``left``: the names that they bind and that are read below.
    """

    first: ast.stmt
    last: ast.stmt | None
    handed: tuple[Handed, ...]
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """``template``: a ``def`` line with places for ``parts``. ``call``: what calls that function."""

    template: str
    parts: tuple[ast.expr, ...]
    call: str


class Cuts(Analysis):
    """Functions of one module."""

    def of(self, function: FunctionNode, first: ast.stmt, last: ast.stmt | None = None) -> Cut | None:
        """The statements from ``first`` to ``last``, or to the end; None where they cannot be taken out."""
        at = function.body.index(first)
        end = len(function.body) if last is None else function.body.index(last) + 1
        rest = function.body[at:end]
        if not self._is_plain(function) or not (self.syntax.alone(first) and self.syntax.alone(rest[-1])):
            return None
        inside = {n for s in rest for n in ast.walk(s)}
        if last is not None and any(isinstance(n, (ast.Return, *_NESTED)) for n in inside):
            return None
        needed = self._needed(function, rest, inside)
        left = self._left(function, rest, inside) if last is not None else ()
        if needed is None or not {*left} <= {*needed, *_bound(rest)}:
            return None
        return Cut(first, last, tuple(_ordered(function, needed)), left)

    def header(self, function: ast.FunctionDef, cut: Cut, name: str, me: str, defaulted: bool) -> Header:
        """The ``def`` line of a function ``name`` that the statements become; ``me``: its first parameter, or ""."""
        parts: list[ast.expr] = []

        def hole(before: str, e: ast.expr | None) -> str:
            parts.extend([] if e is None else [e])
            return "" if e is None else f"{before}{{{len(parts) - 1}}}"

        written = [me] if me else []
        for h in cut.handed:
            equals = "=" if h.annotation is None else " = "
            written.append(h.name + hole(": ", h.annotation) + hole(equals, h.default if defaulted else None))
        result = hole(" -> ", function.returns if cut.last is None else None)
        width = len(name + ", ".join(written)) + sum(len(ast.unparse(p)) for p in parts) + function.col_offset
        fits = width + _AROUND <= self.facts.line_length
        inside = ", ".join(written) if fits else "\n" + "".join(f"    {w},\n" for w in written)
        call = f"{me}{'.' if me else ''}{name}({', '.join(h.name for h in cut.handed)})"
        return Header(f"def {name}({inside}){result}:", tuple(parts), call)

    def _is_plain(self, function: FunctionNode) -> bool:
        for d in function.decorator_list:
            what = self.syntax.qualified(d.func if isinstance(d, ast.Call) else d) or ""
            if what not in _HARMLESS and not what.startswith(_WRAPPERS):
                return False
        odd = any(isinstance(n, _SCOPED) for n in ast.walk(function))
        return isinstance(function, ast.FunctionDef) and not odd and not self.syntax.why_names_show(function)

    def _needed(
        self, function: FunctionNode, rest: list[ast.stmt], inside: set[ast.AST]
    ) -> dict[str, set[Definition]] | None:
        """What reaches the statements from above, by name; None where one of the names may have no value.

        Functions that are made in them read what a name holds when they are called: it must be bound for sure above.
        Those that are made above must not read what changes in them.
        """
        flow, head = self.flow_of(function), function.body[: function.body.index(rest[0])]
        sure = {*_bound(head), *(p.arg for p in all_parameters(function.args))}
        above = [d for d in flow.by_node.values() if d.node not in inside]
        needed: dict[str, set[Definition]] = {}
        for name in self._read(rest):
            held = flow.reaching.get(name)
            found = {d for d in (above if held is None else held) if d.name == name.id and d.node not in inside}
            known = {d for d in found if d.how != "unbound"}
            if known and (len(known) < len(found) or (held is None and name.id not in sure)):
                return None
            if known:
                needed.setdefault(name.id, set()).update(known)
        me = self_name(function) if self.syntax.method_of(function) is function else None
        rebound = any(d.how != "parameter" for d in needed.pop(me or "", ()))
        stored = {d.name for d in flow.by_node.values() if d.node in inside}
        return None if rebound or _is_read_later(head, stored) else needed

    def _left(self, function: FunctionNode, rest: list[ast.stmt], inside: set[ast.AST]) -> tuple[str, ...]:
        """The names that the statements bind and that are read below them, as they are bound."""
        flow, below = self.flow_of(function), function.body[function.body.index(rest[-1]) + 1 :]
        made = [d for n in inside if (d := flow.by_node.get(n)) is not None]
        made.sort(key=lambda d: (d.node.lineno, d.node.col_offset))  # type: ignore[attr-defined]
        held = [(n.id, flow.reaching.get(n)) for n in self._read(below)]
        wanted = {name for name, found in held if found is None or any(d in made for d in found)}
        return tuple(dict.fromkeys(d.name for d in made if d.name in wanted))

    def _read(self, statements: list[ast.stmt]) -> list[ast.Name]:
        """The names that are read in ``statements``, in order."""
        names = (n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name))
        read = (n for n in names if not is_stored(n) or isinstance(self.syntax.parents[n], ast.AugAssign))
        return sorted(read, key=lambda n: (n.lineno, n.col_offset))


def _is_read_later(head: list[ast.stmt], names: set[str]) -> bool:
    """Whether a function that is made in ``head`` reads one of ``names`` when it is called."""
    nested = (n for s in head for n in ast.walk(s) if isinstance(n, (*_NESTED, ast.GeneratorExp)))
    return any(isinstance(n, ast.Name) and n.id in names for f in nested for n in ast.walk(f))


def _bound(statements: list[ast.stmt]) -> Iterator[str]:
    """The names that surely have a value after ``statements``."""
    for s in statements:
        if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None:
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and is_stored(n))


def _ordered(function: FunctionNode, needed: dict[str, set[Definition]]) -> Iterator[Handed]:
    """Parameters without a default first, then what was made above, then the parameters with one."""
    plain: list[Handed] = []
    last: list[Handed] = []
    known, parameters = defaults(function.args), all_parameters(function.args)
    for p in (p for p in parameters if p.arg in needed):
        kept = all(d.how == "parameter" for d in needed[p.arg]) and p not in (function.args.vararg, function.args.kwarg)
        default = known.get(p.arg) if kept else None
        if default is not None and not _is_plain(default):
            default = None
        (plain if default is None else last).append(Handed(p.arg, p.annotation if kept else None, default))
    made = needed.keys() - {p.arg for p in parameters}
    yield from (*plain, *(Handed(n) for n in needed if n in made), *last)


def _is_plain(e: ast.expr) -> bool:
    """Whether ``e`` may be evaluated twice."""
    match e:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_plain(operand)
        case ast.Tuple(elts=[_, *_] as elements):
            return all(map(_is_plain, elements))
    return isinstance(e, ast.Constant)
