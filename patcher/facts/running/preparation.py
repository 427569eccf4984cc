"""Where a `forward` that is given a list falls apart: what prepares the list, and the rest, which needs it no more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import all_parameters, defaults, is_stored
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NESTED = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
_ODD = (ast.Return, ast.Import, ast.ImportFrom, ast.Try, ast.Match)
#: A decorator that leaves the function as it is, and says something about all that it calls as well.
_HARMLESS = frozenset({*api.GRAD_OFF, "torch.enable_grad", "torch.autocast", "torch.amp.autocast", "typing.override"})
#: Packages whose decorators do something before and after, and call what they decorate.
_WRAPPERS = ("transformers.",)
#: What gives a list of a list.
_LISTS = frozenset("list tuple sorted reversed zip enumerate map filter chain".split())


@dataclass(frozen=True)
class Handed:
    """A value that the rest needs. ``annotation``, ``default``: as `forward` has them, for a parameter of it.

    ``sure``: it is known to be no list.
    """

    name: str
    annotation: ast.expr | None = None
    default: ast.expr | None = None
    sure: bool = True


@dataclass(frozen=True)
class Split:
    """``first``: the first statement of the rest, which goes to the end of the function; ``handed``: in order."""

    first: ast.stmt
    handed: tuple[Handed, ...]


class Preparation(Analysis):
    """Splits functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)

    def split(self, function: FunctionNode, parameters: tuple[str, ...]) -> Split | str | None:
        """The two halves; why there are none; or None where the rest does nothing but hand on or return.

        ``parameters``: those that hold a list.
        """
        body = function.body
        last = _last_read(body, parameters)
        rest = body[last + 1 :]
        if last < 0 or _hands_on(rest, function):
            return None
        if not rest:
            return f"`{'` and `'.join(parameters)}` is read up to the end"
        handed = self.cut(function, rest[0])
        return handed if isinstance(handed, str) else Split(rest[0], handed)

    def cut(self, function: FunctionNode, first: ast.stmt, last: ast.stmt | None = None) -> tuple[Handed, ...] | str:
        """What the statements of ``function`` from ``first`` to ``last``, or to its end, need from those above.

        Or why they cannot be taken out there.
        """
        at, end = function.body.index(first), len(function.body) if last is None else function.body.index(last) + 1
        rest = function.body[at:end]
        reason = self._why_whole(function)
        if not reason and not (self.syntax.alone(first) and self.syntax.alone(rest[-1])):
            reason = "the rest does not start on a line of its own"
        return reason or self._handed(function, function.body[:at], rest, self.inference.flow_of(function))

    def left(
        self, function: FunctionNode, first: ast.stmt, last: ast.stmt, handed: tuple[Handed, ...]
    ) -> list[str] | str:
        """The names that ``first`` to ``last`` bind and that are read below; or why they cannot be handed back."""
        at, end = function.body.index(first), function.body.index(last) + 1
        inside, below = function.body[at:end], function.body[end:]
        if any(isinstance(n, (*_NESTED, ast.GeneratorExp, ast.Delete)) for s in inside for n in ast.walk(s)):
            return "functions and generators that are made there may live on"
        if any(isinstance(n, _ODD) for s in inside for n in ast.walk(s)):
            return "it may return, or gives names in unusual ways"
        flow, made = self.inference.flow_of(function), {n for s in inside for n in ast.walk(s)}
        read: set[str] = set()
        for n in (n for s in below for n in ast.walk(s) if isinstance(n, ast.Name)):
            if isinstance(n.ctx, ast.Store) and not isinstance(self.syntax.parents[n], ast.AugAssign):
                continue
            held = flow.reaching.get(n)
            if held is None or any(d.node in made for d in held):
                read.add(n.id)
        bound = [n.id for s in inside for n in _bindings(s)]
        known = {n.id for s in inside for n in _surely_bound(s)} | {h.name for h in handed}
        names = [n for n in dict.fromkeys(bound) if n in read]
        lost = next((n for n in names if n not in known), None)
        return names if lost is None else f"`{lost}` may have no value there"

    # --- what must stay one function --------------------------------------------------------------------------------

    def _why_whole(self, function: FunctionNode) -> str:
        if not isinstance(function, ast.FunctionDef):
            return f"`{function.name}` is a coroutine"
        for d in function.decorator_list:
            what = self.syntax.qualified(d.func if isinstance(d, ast.Call) else d)
            if what not in _HARMLESS and not (what or "").startswith(_WRAPPERS):
                return f"`@{ast.unparse(d)}` is about the whole of `{function.name}`"
        for n in ast.walk(function):
            if isinstance(n, (ast.Global, ast.Nonlocal)):
                return f"`{ast.unparse(n)}` stands in it"
            if isinstance(n, (ast.Yield, ast.YieldFrom)) and self.syntax.function_of(n) is function:
                return f"`{function.name}` is a generator"
        return self.syntax.why_names_show(function)

    # --- what goes from one half to the other -----------------------------------------------------------------------

    def _handed(
        self, function: FunctionNode, head: list[ast.stmt], rest: list[ast.stmt], flow: Flow
    ) -> tuple[Handed, ...] | str:
        inside = {n for s in rest for n in ast.walk(s)}
        me = next(iter([*function.args.posonlyargs, *function.args.args]), None)
        me = me if self.syntax.method_of(function) is function else None
        needed: dict[str, set[Definition]] = {}
        sure: dict[str, bool] = {}
        for name in sorted((n for n in inside if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset)):
            before = self._before(name, inside, flow)
            if isinstance(before, str):
                return before
            if before:
                needed.setdefault(name.id, set()).update(before)
                value = self.inference.of(name) if isinstance(name.ctx, ast.Load) else None
                known = value is None or value.kind is not Kind.UNKNOWN or all(d.how == "parameter" for d in before)
                sure[name.id] = sure.get(name.id, True) and known
        if me is not None and any(d.how != "parameter" for d in needed.pop(me.arg, ())):
            return f"`{me.arg}` gets another value"
        if self._captured_before(head) & {d.name for d in flow.by_node.values() if d.node in inside}:
            return "a function that is made before reads a name that changes later"
        for name_, definitions in needed.items():
            odd = [d for d in definitions if d.how == "other" or isinstance(d.value, ast.Lambda)]
            if any(not isinstance(d.node, (ast.Name, ast.arg)) or isinstance(d.value, ast.Lambda) for d in odd):
                return f"`{name_}` is a function or an import of the preparation"
        kept = {d.name for d in flow.by_node.values() if d.node not in inside}
        taken = {d.name for d in flow.by_node.values() if d.node in inside} - kept
        if lost := {n.id for s in head for n in self.syntax.subtree(s) if isinstance(n, ast.Name)} & taken:
            return f"`{min(lost)}` is a local name because of what comes later only"
        graph = self.facts.ask(Unchanged).graph(function)
        start = graph.step_of(_first(rest[0]))
        for name_, definitions in needed.items():
            given = any(d.how == "parameter" for d in definitions)
            bound = given or (start is not None and graph.always_binds(name_, start))
            if not bound or any(d.how == "unbound" for d in definitions):
                return f"`{name_}` may have no value there"
        return tuple(_ordered(function, needed, sure))

    def _before(self, name: ast.Name, inside: set[ast.AST], flow: Flow) -> set[Definition] | str:
        """The values that ``name`` may have got before the rest; or why one of them cannot be handed on."""
        within = [p for p in self.syntax.ancestors(name) if isinstance(p, _NESTED) and p in inside]
        if within or isinstance(name.ctx, ast.Del):
            # a nested function reads it when it is called: whatever the name has at the end of the preparation
            if isinstance(name.ctx, ast.Store) or any(name.id in self._own_names(p) for p in within):
                return set()
            named = {d for d in flow.by_node.values() if d.name == name.id and d.node not in inside}
            found = {d for d in named if not self._in_comprehension(d)}
            if found and not any(d.how == "parameter" or self._is_certain(d, flow.function) for d in found):
                return f"`{name.id}` has no value on some path"
            return found
        if not isinstance(name.ctx, ast.Load) and not isinstance(self.syntax.parents[name], ast.AugAssign):
            return set()
        held = flow.reaching.get(name, frozenset())
        found = {d for d in held if d.node not in inside and d.how != "unbound"}
        if found and any(d.how == "unbound" for d in held):
            return f"`{name.id}` has no value on some path"
        return found

    def _is_certain(self, d: Definition, function: FunctionNode) -> bool:
        return d.how == "assign" and self.syntax.statement_of(d.node) in function.body

    def _in_comprehension(self, d: Definition) -> bool:
        return d.how == "iteration" and any(isinstance(p, ast.comprehension) for p in self.syntax.ancestors(d.node))

    def _own_names(self, scope: ast.AST) -> set[str]:
        """Names that the nested function ``scope`` binds itself, for all of its body."""
        if not isinstance(scope, (*_FUNCTIONS, ast.Lambda)):
            return set()
        parameters = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
        body: list[ast.AST] = [*scope.body] if isinstance(scope.body, list) else [scope.body]
        stored = (n for s in body for n in ast.walk(s) if is_stored(n))
        inner = (ast.comprehension, *_NESTED)
        return parameters | {
            n.id for n in stored if next((p for p in self.syntax.ancestors(n) if isinstance(p, inner)), None) is scope
        }

    def _captured_before(self, head: list[ast.stmt]) -> set[str]:
        nested = [n for s in head for n in ast.walk(s) if isinstance(n, (*_NESTED, ast.GeneratorExp))]
        return {n.id for f in nested for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _last_read(body: list[ast.stmt], parameters: tuple[str, ...]) -> int:
    """Where the last statement of ``body`` stands that reads one of the lists, or one that is made of them; -1: none.

    Below ``if isinstance(parts, list): parts = torch.cat(parts)`` the name holds none any more.
    """
    last, names = -1, set(parameters)
    for at, statement in enumerate(body):
        reads = _reads(statement, names)
        if reads:
            last = at
        match statement:
            case ast.If(test=test) if "isinstance" in ast.unparse(test) and _reads(test, names):
                names -= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and is_stored(n)}
            case ast.For(iter=items) if _reads(items, names):
                grown = (n.value for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "append")
                names |= {n.id for n in grown if isinstance(n, ast.Name)}
            case ast.Assign(targets=[ast.Tuple(elts=elts)]) if reads:
                names |= {e.value.id for e in elts if isinstance(e, ast.Starred) and isinstance(e.value, ast.Name)}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names = names | {name} if _is_list(value) and reads else names - {name}
    return last


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names and not is_stored(n) for n in ast.walk(node))


def _is_list(e: ast.expr) -> bool:
    """Whether ``e`` makes a list of one, as far as it is written."""
    listed = isinstance(e, ast.Call) and last_name(e.func) in _LISTS
    return listed or isinstance(e, (ast.Name, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Dict))


def _ordered(function: FunctionNode, needed: dict[str, set[Definition]], sure: dict[str, bool]) -> Iterator[Handed]:
    """Parameters without a default first, then what the preparation has made, then the parameters with one."""
    a = function.args
    known = defaults(a)
    plain: list[Handed] = []
    last: list[Handed] = []
    for p in all_parameters(function.args):
        if p.arg in needed:
            kept = all(d.how == "parameter" for d in needed[p.arg])
            annotation = p.annotation if kept and p not in (a.vararg, a.kwarg) else None
            default = known.get(p.arg) if kept else None
            if default is not None and not _is_plain(default):
                default = None
            (plain if default is None else last).append(Handed(p.arg, annotation, default, sure[p.arg]))
    made = [Handed(n, sure=sure[n]) for n in needed if n not in {p.arg for p in all_parameters(function.args)}]
    yield from (*plain, *made, *last)


def _is_plain(e: ast.expr) -> bool:
    """Whether ``e`` may be evaluated twice."""
    match e:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_plain(operand)
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(_is_plain, elements))
    return False


def _hands_on(rest: list[ast.stmt], function: FunctionNode) -> bool:
    """Whether ``rest`` only returns a name, or what one method makes of names: there is nothing to take apart."""
    if len(rest) != 1:
        return False
    match rest[0]:
        case ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Name(id=me)), args=args, keywords=keywords)):
            own = [*function.args.posonlyargs, *function.args.args][:1]
            handed = [*args, *(k.value for k in keywords)]
            return [a.arg for a in own] == [me] and all(isinstance(v, (ast.Name, ast.Starred)) for v in handed)
        case ast.Return(value=value):
            return value is None or isinstance(value, (ast.Name, ast.Constant))
    return isinstance(rest[0], ast.Pass)


def _first(statement: ast.stmt) -> ast.AST:
    """What of ``statement`` runs first."""
    match statement:
        case ast.With(items=[first, *_]) | ast.AsyncWith(items=[first, *_]):
            return first
        case ast.Match(subject=subject):
            return subject
        case ast.Try(body=[first, *_]):
            return _first(first)
    return statement


def _bindings(s: ast.stmt) -> Iterator[ast.Name]:
    """The names that ``s`` binds for its function: not the variables of a comprehension."""
    stack: list[ast.AST] = [s]
    while stack:
        n = stack.pop()
        if is_stored(n):
            yield n
        if isinstance(n, ast.comprehension):
            yield from (w.target for w in ast.walk(n) if isinstance(w, ast.NamedExpr))
        else:
            stack.extend(ast.iter_child_nodes(n))


def _surely_bound(s: ast.stmt) -> Iterator[ast.Name]:
    """The names that have a value after ``s``, which is an assignment."""
    match s:
        case ast.Assign(targets=targets):
            yield from (n for t in targets for n in ast.walk(t) if is_stored(n))
        case ast.AnnAssign(target=target, value=ast.expr()):
            yield from filter(is_stored, ast.walk(target))
