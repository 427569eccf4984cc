"""Where a module writes a number into a tensor that another object holds, and what number that is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from patcher.facts.flow import Flow
from patcher.facts.numbers.instance_terms import instance_terms
from patcher.facts.syntax import FunctionNode, Syntax

_WRITERS = ("copy_", "constant_", "fill_")


@dataclass(frozen=True)
class Renewal:
    """``instance.attribute`` is filled with ``text``, which is in terms of the instance ("" when not known).

    ``classes``: the instance is one of these; any when there are none.
    """

    attribute: str
    classes: tuple[str, ...]
    text: str


class Renewals:
    """All of them in one module: ``found``. What fills anything but an attribute is not among them."""

    def __init__(self, syntax: Syntax, resolve: Callable[[str], str]) -> None:
        self.syntax = syntax
        self.resolve = resolve
        self.found: set[Renewal] = set()
        self._flows: dict[FunctionNode, Flow] = {}
        names: dict[str, list[ast.Call]] = {}
        for call in syntax.by_type[ast.Call]:
            assert isinstance(call, ast.Call)
            for target, value in _filled(call):
                if isinstance(target, ast.Attribute):
                    self.found.add(self._renewal(call, target, value))
                elif isinstance(target, ast.Name):
                    names.setdefault(target.id, []).append(call)
        for taken in syntax.by_type[ast.Assign] if names else ():
            assert isinstance(taken, ast.Assign)
            if isinstance(taken.value, ast.Attribute):
                for t in taken.targets:
                    if isinstance(t, ast.Name) and t.id in names:
                        self.found.add(Renewal(taken.value.attr, (), ""))

    def _renewal(self, call: ast.Call, target: ast.Attribute, value: ast.expr | None) -> Renewal:
        owner, function = target.value, self.syntax.function_of(call)
        if function is None or not isinstance(owner, ast.Name):
            return Renewal(target.attr, (), "")
        if function not in self._flows:
            self._flows[function] = Flow(function)
        flow = self._flows[function]
        tested = tested_classes(self.syntax, flow, owner)
        classes = [self.syntax.qualified(c) or self.resolve(ast.unparse(c)) for c in tested]
        return Renewal(target.attr, tuple(sorted(classes)), self._text(owner, value, flow))

    def _text(self, owner: ast.Name, value: ast.expr | None, flow: Flow) -> str:
        instance = flow.reaching.get(owner, frozenset())
        if value is None or not instance or any(d.how != "parameter" for d in instance):
            return ""
        terms = instance_terms(value, instance, self.syntax, flow)
        return ast.unparse(terms) if terms is not None else ""


def _filled(call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What ``call`` fills in place, and with what, where that is one expression."""
    func, args = call.func, call.args
    for k in call.keywords:
        if k.arg == "out":
            yield k.value, None
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if not last.endswith("_") or last.startswith("_"):
        return
    simple = last in _WRITERS and not call.keywords
    if args:
        yield _held(args[0]), args[1] if simple and len(args) == 2 else None
    if isinstance(func, ast.Attribute):
        yield _held(func.value), args[0] if simple and len(args) == 1 else None


def _held(e: ast.expr) -> ast.expr:
    """The tensor that ``e`` shows the data of."""
    return e.value if isinstance(e, ast.Attribute) and e.attr == "data" else e


def tested_classes(syntax: Syntax, flow: Flow, name: ast.Name) -> list[ast.expr]:
    """The classes that ``name`` is an instance of one of where it stands; none when that is not known."""
    child: ast.AST = name
    for parent in syntax.ancestors(name):
        if isinstance(parent, ast.If) and child in parent.body and (classes := _tested(parent.test, name, flow)):
            return classes
        child = parent
    return []


def _tested(test: ast.expr, name: ast.Name, flow: Flow) -> list[ast.expr]:
    """The classes that ``name`` is an instance of one of when ``test`` is true."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as tested, classes]) if tested.id == name.id:
            if flow.unchanged(tested, name):
                return classes.elts if isinstance(classes, ast.Tuple) else [classes]
        case ast.BoolOp(op=ast.And(), values=values):
            return next((found for v in values if (found := _tested(v, name, flow))), [])
    return []
