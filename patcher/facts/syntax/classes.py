"""What a class says about its attributes: every place that assigns ``self.x``, and how."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, methods_of

INITIALISERS = ("__init__", "__post_init__")
#: Methods of a module that make an attribute of it, and what that is.
REGISTRATIONS = {
    "register_buffer": "buffer",
    "register_parameter": "parameter",
    "add_module": "module",
    "register_module": "module",
}


@dataclass(frozen=True, eq=False)
class Store:
    """One assignment to ``self.name``.

    ``how``: "assign", "buffer" (``register_buffer``), "parameter" (``register_parameter``), "module" (``add_module``),
    "declared" (at class level; ``value`` may be None) or "other" (augmented, tuple, ``del`` ...).
    """

    name: str
    method: FunctionNode | None
    statement: ast.stmt
    value: ast.expr | None
    how: str
    annotation: ast.expr | None = None

    @property
    def in_place(self) -> bool:
        """Whether it changes a tensor that is there in place (``@=`` makes another one)."""
        return isinstance(self.statement, ast.AugAssign) and not isinstance(self.statement.op, ast.MatMult)


class ClassFacts:
    """The attributes and methods of one class definition. ``appended``: what its methods append to lists it holds."""

    def __init__(self, node: ast.ClassDef, syntax: Syntax) -> None:
        self.node = node
        every = methods_of(node)
        self.methods: dict[str, FunctionNode] = {s.name: s for s in every}
        self.stores: defaultdict[str, list[Store]] = defaultdict(list)
        self.appended: defaultdict[str, list[tuple[FunctionNode, ast.expr]]] = defaultdict(list)
        self.bases = tuple(syntax.qualified(b) or dotted(b) or "?" for b in node.bases)
        for s in node.body:
            match s:
                case ast.AnnAssign(target=ast.Name(id=name), value=value, annotation=annotation):
                    self.stores[name].append(Store(name, None, s, value, "declared", annotation))
                case ast.Assign(targets=targets, value=value):
                    for name in (t.id for t in targets if isinstance(t, ast.Name)):
                        self.stores[name].append(Store(name, None, s, value, "declared"))
        for method in every:  # several of one name, too: a property and its setter, one of two by a test
            me = self_name(method)
            if me is not None:
                self._walk(method, me)

    def _walk(self, method: FunctionNode, me: str) -> None:
        stack: list[ast.AST] = list(method.body)
        while stack:
            n = stack.pop()
            if isinstance(n, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.For, ast.With)):
                self._statement(n, method, me)
            elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Call):
                self._registration(n, n.value, method, me)
            if isinstance(n, (ast.stmt, ast.ExceptHandler)) or type(n).__name__ == "match_case":
                for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                    stack.extend(getattr(n, name, ()))

    def _statement(self, s: ast.stmt, method: FunctionNode, me: str) -> None:
        match s:
            case ast.Assign(targets=targets, value=value):
                for t, v in ((t, v) for target in targets for t, v in pairs(target, value)):
                    name = attribute_of(t, me)
                    if name is not None and v is not None:
                        self.stores[name].append(Store(name, method, s, v, "assign"))
                    else:
                        self._other(t, s, method, me)
            case ast.AnnAssign(target=t, value=value, annotation=annotation):
                if (name := attribute_of(t, me)) is not None and value is not None:
                    self.stores[name].append(Store(name, method, s, value, "assign", annotation))
            case ast.AugAssign(target=t, value=value):
                if (name := attribute_of(t, me)) is not None:
                    self.stores[name].append(Store(name, method, s, value, "other"))
            case ast.Delete(targets=targets):
                for t in targets:
                    self._other(t, s, method, me)
            case ast.For(target=t):
                self._other(t, s, method, me)
            case ast.With(items=items):
                for item in items:
                    if item.optional_vars is not None:
                        self._other(item.optional_vars, s, method, me)

    def _other(self, target: ast.expr, s: ast.stmt, method: FunctionNode, me: str) -> None:
        elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for element in elements:
            if isinstance(element, ast.Starred):
                element = element.value
            if (name := attribute_of(element, me)) is not None:
                self.stores[name].append(Store(name, method, s, None, "other"))

    def _registration(self, s: ast.stmt, call: ast.Call, method: FunctionNode, me: str) -> None:
        match call:
            case ast.Call(func=ast.Attribute(value=held, attr="append"), args=[item]):
                if (name := attribute_of(held, me)) is not None:
                    self.appended[name].append((method, item))
                return
        registering = registered(call)
        if registering is None or attribute_of(call.func, me) is None:
            return
        values = [k.value for k in call.keywords if k.arg in ("tensor", "param", "module")]
        value = next(iter([*call.args[1:2], *values]), None)
        how = REGISTRATIONS[attribute_of(call.func, me) or ""]
        self.stores[registering].append(Store(registering, method, s, value, how))

    def initial(self, name: str) -> Store | None:
        """The only assignment of ``self.name``, when there is just one (declarations aside) and it is in __init__."""
        stores = [s for s in self.stores.get(name, ()) if s.how != "declared" or s.value is not None]
        if len(stores) == 1 and (stores[0].method is None or stores[0].method.name in INITIALISERS):
            return stores[0]
        return None


def registered(call: ast.Call) -> str | None:
    """The name of the attribute that ``call`` registers on a module; None when it does not, or works the name out."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in REGISTRATIONS:
        return None
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "name")]
    match given:
        case [ast.Constant(value=str(name)), *_]:
            return name
    return None


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """``a, b = x, y`` as (a, x), (b, y); anything that does not line up as it is, with None for an unknown part."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif (
        isinstance(value, (ast.Tuple, ast.List))
        and len(value.elts) == len(target.elts)
        and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
    ):
        for t, v in zip(target.elts, value.elts, strict=True):
            yield from pairs(t, v)
    else:
        for t in target.elts:
            yield t, None


def self_name(method: FunctionNode) -> str | None:
    """What the method calls its instance, or None for a static or class method."""
    for decorator in method.decorator_list:
        if dotted(decorator) in ("staticmethod", "classmethod"):
            return None
    arguments = [*method.args.posonlyargs, *method.args.args]
    return arguments[0].arg if arguments else None


def parameter_at(function: FunctionNode, key: str | int | None, bound: bool) -> ast.arg | None:
    """The parameter that takes the argument of that name or at that position; ``bound``: the first is the instance."""
    positional = [*function.args.posonlyargs, *function.args.args][int(bound) :]
    if isinstance(key, int):
        return positional[key] if key < len(positional) else None
    return next((a for a in (*positional, *function.args.kwonlyargs) if a.arg == key), None)


def attribute_of(expr: ast.AST, name: str) -> str | None:
    """``x`` when ``expr`` is ``name.x``."""
    if isinstance(expr, ast.Attribute) and isinstance(expr.value, ast.Name) and expr.value.id == name:
        return expr.attr
    return None
