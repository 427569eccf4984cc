"""What running one node may change: names, attributes, memory; with code that is not read, all that it can reach."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Called, Calls, spelled
from patcher.facts.flow.graph import inside
from patcher.facts.project.does import constant_name, owner_of_dict
from patcher.facts.tables import call_effects as tables
from patcher.facts.values.types import Kind

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Builtins that take from what they are given turn by turn.
_LAZY = frozenset({"enumerate", "zip", "iter", "reversed"})


class How(enum.Enum):
    """What a write is.

    ``BINDS`` a local name, ``SETS`` an attribute, ``WRITES`` memory or a container, ``RESIZES`` (the same, and another
    shape may come of it), ``RUNS`` code that is not read.
    """

    BINDS = "binds"
    SETS = "sets"
    WRITES = "writes"
    RESIZES = "resizes"
    RUNS = "runs"


@dataclass(frozen=True)
class Write:
    """One change that ``node`` may make.

    ``name``: what it binds, or the attribute that it sets ("*": any). ``objects``: what is changed (``deep``: with all
    that it holds; ``afar``: and what others than this function hold), the owner of what is set, or what code that is
    not read is given.
    """

    how: How
    node: ast.AST
    name: str = ""
    objects: tuple[ast.expr, ...] = ()
    deep: bool = False
    afar: bool = False

    @property
    def told(self) -> str:
        """What stands there, for a message."""
        node = self.node
        text = spelled(node) + "()" if isinstance(node, ast.Call) else ast.unparse(node).split("\n")[0]
        return f"`{text[:60]}`"


class Writes(Analysis):
    """Changes that the code of one module makes, node by node."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.calls = facts.ask(Calls)
        self._steps: dict[ast.AST, tuple[Write, ...]] = {}

    def in_step(self, step: ast.AST) -> tuple[Write, ...]:
        """All that a step of a graph changes."""
        known = self._steps.get(step)
        if known is None:
            nodes = inside(step)
            found = [w for n in nodes for w in self.of(n)]
            known = self._steps[step] = (*found, *self._of_statement(step))
        return known

    def of(self, n: ast.AST) -> Iterator[Write]:
        """What ``n`` itself changes when it runs, the nodes in it left out."""
        match n:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                if not isinstance(self.syntax.parents.get(n), ast.comprehension):
                    yield Write(How.BINDS, n, name)
            case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()):
                yield from self._set_attribute(n, owner, attr)
            case ast.Attribute(value=owner, attr=attr):
                yield from self._read_attribute(n, owner, attr)
            case ast.Subscript(value=held, slice=key, ctx=ast.Store() | ast.Del()):
                if (holder := owner_of_dict(held)) is not None:
                    yield Write(How.SETS, n, constant_name(key), (holder,))
                resizes = self.inference.of(held).kind is not Kind.TENSOR
                yield Write(How.RESIZES if resizes else How.WRITES, n, objects=(held,))
                yield from self._operator(n, ("__setitem__", "__delitem__"), held)
            case ast.Subscript(value=held):
                yield from self._operator(n, ("__getitem__", "__missing__"), held)
            case ast.BinOp(left=left, op=op, right=right):
                yield from self._operator(n, tables.OPERATOR_METHODS[type(op)], left, right)
            case ast.Compare(left=left, ops=ops, comparators=others):
                for by, one, other in zip(ops, [left, *others], others, strict=False):
                    yield from self._operator(n, tables.OPERATOR_METHODS[type(by)], one, other)
                    if isinstance(by, (ast.In, ast.NotIn)):
                        yield from self._operator(n, tables.CONTAINING_METHODS, other)
            case ast.UnaryOp(op=op, operand=operand):
                yield from self._operator(n, tables.OPERATOR_METHODS[type(op)], operand)
            case ast.FormattedValue(value=value):
                yield from self._operator(n, tables.SHOWING_METHODS, value)
            case ast.AugAssign(target=target):
                yield from self._augmented(n, target)
            case ast.Call():
                yield from self._called(n, self.calls.of(n))
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                yield Write(How.RUNS, n)
            case ast.alias() | ast.ExceptHandler() | ast.pattern():
                yield Write(How.BINDS, n, "*")
            case _ if isinstance(n, _COMPREHENSIONS):
                for generator in n.generators:
                    yield from self._iterates(n, generator.iter)

    def _of_statement(self, step: ast.AST) -> Iterator[Write]:
        """What a step changes that is none of its parts."""
        match step:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield Write(How.BINDS, step, name)
            case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
                yield from self._iterates(step, iterable)

    def _iterates(self, n: ast.AST, iterable: ast.expr) -> Iterator[Write]:
        """Each turn may run a generator of the project, or an iterator that is not known."""
        func = iterable.func if isinstance(iterable, ast.Call) else None
        lazy = isinstance(iterable, ast.GeneratorExp) or (isinstance(func, ast.Name) and func.id in _LAZY)
        plain = self.inference.of(iterable).kind in (Kind.TENSOR, Kind.PYTHON, Kind.MODULE)
        if lazy or not plain or self.calls.is_lazy(iterable):
            yield Write(How.RUNS, n, objects=(iterable,), deep=True)

    def _set_attribute(self, n: ast.AST, owner: ast.expr, attr: str) -> Iterator[Write]:
        yield Write(How.SETS, n, attr, (owner,))
        own = self.inference.instance_attribute(n) if isinstance(n, ast.Attribute) else None
        if attr in ("data", "grad") or self.inference.of(owner).is_tensor:
            yield Write(How.RESIZES, n, objects=(owner,))
        names = [attr] if attr in self.project.properties else []
        if own is not None:
            overridden = self.project.methods(f"{self.module}.{self.syntax.qualname(own[0])}", "__setattr__")
        else:
            overridden = [] if self.inference.of(owner).is_tensor else self.project.named_methods("__setattr__")
        if overridden:
            names.append("__setattr__")
        if names:
            yield from self._called(n, self.calls.hidden(names, (owner,)))

    def _read_attribute(self, n: ast.Attribute, owner: ast.expr, attr: str) -> Iterator[Write]:
        own = self.inference.instance_attribute(n)
        if own is not None:
            names = self._behind_own(own[0], attr)
        elif self.inference.of(owner).kind in (Kind.TENSOR, Kind.PYTHON):
            return
        else:
            names = [attr] if attr in self.project.properties else []
        if names:
            yield from self._called(n, self.calls.hidden(names, (owner,)))

    def _behind_own(self, cls: ast.ClassDef, attr: str) -> list[str]:
        """The methods that may run when an instance of ``cls``, or of a class below it, is asked for ``attr``."""
        family, _ = self.project.family(f"{self.module}.{self.syntax.qualname(cls) or cls.name}")
        known = [c for name in family if (c := self.project.known_class(name)) is not None]
        names = [m for m in ("__getattr__", "__getattribute__") if any(m in c.methods for c in known)]
        return [*names, attr] if any(attr in c.properties for c in known) else names

    def _operator(self, n: ast.AST, names: frozenset[str] | tuple[str, ...], *operands: ast.expr) -> Iterator[Write]:
        """What special methods of the project do, when an operand may be an object of it."""
        plain = (Kind.TENSOR, Kind.PYTHON)
        if all(self.inference.of(e).kind in plain or isinstance(e, ast.Slice) for e in operands):
            return
        defined = [m for m in names if self.project.named_methods(m)]
        if defined:
            yield from self._called(n, self.calls.hidden(defined, operands))

    def _augmented(self, n: ast.AugAssign, target: ast.expr) -> Iterator[Write]:
        if isinstance(n.value, ast.Tuple) and self._holds_tuple(target):
            return
        value = self.inference.of(target)
        if not value.is_number and value.python != "str":
            yield Write(How.RESIZES if value.kind is not Kind.TENSOR else How.WRITES, n, objects=(target,))
        names = tables.OPERATOR_METHODS[type(n.op)]
        yield from self._operator(n, names | {f"__i{m[2:]}" for m in names}, target)

    def _holds_tuple(self, target: ast.expr) -> bool:
        """Whether ``target`` is a local name of tuples that are written out, or None, which ``+=`` never changes."""
        function = self.syntax.function_of(target)
        if not isinstance(target, ast.Name) or function is None or target.id in self.inference.flow_of(function).shared:
            return False
        found = self.inference.definitions(target)
        return bool(found) and all(d.how in ("assign", "augmented") and _is_tuple(d.part) for d in found)

    def _called(self, n: ast.AST, called: Called) -> Iterator[Write]:
        if called.runs:
            yield Write(How.RUNS, n, objects=called.writes)
            return
        if called.writes or called.afar:
            how = How.RESIZES if called.resizes else How.WRITES
            yield Write(how, n, objects=called.writes, deep=called.deep, afar=called.afar)
        for name in sorted(called.sets):
            yield Write(How.SETS, n, name)


def _is_tuple(part: tuple[ast.expr | None, tuple[int, ...]]) -> bool:
    """Whether what is bound is a tuple that is written out, or None."""
    match part:
        case (ast.IfExp(body=body, orelse=orelse), ()):
            return _is_tuple((body, ())) and _is_tuple((orelse, ()))
        case (ast.Tuple() | ast.Constant(value=None), ()):
            return True
    return False
