"""Functions that run under another name: what a name, an attribute, a parameter of a class or a call may stand for.

``relu = F.relu``, ``apply = Function.apply``, ``SOLVERS = {"euler": Euler}`` of a module, ``self.step = self.slow``,
``self.reduce = partial(total, dim=1)``, ``super().__init__(reduce=total)``, ``Pool(total)``, ``return total``. What is
written ``package.Pool.reduce`` is an attribute of instances, ``package.Pool(reduce)`` and ``package.Pool(0)`` what a
class is made with, by name and by place, and ``package.choose()`` what a function returns.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from patcher.facts.syntax.classes import INITIALISERS, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, last_name, own_nodes
from patcher.facts.syntax.written import one_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: How many local names may stand one for the other.
_LOCALS = 3


class GivenFunctions:
    """Those of one module."""

    def __init__(self, syntax: Syntax, module: str, resolve: Callable[[str], str]) -> None:
        self.syntax, self.module, self.resolve = syntax, module, resolve
        self._locals: dict[FunctionNode, dict[str, list[ast.expr]]] = {}

    def found(self) -> Iterator[tuple[str, str]]:
        """What may stand for a function, and a dotted thing that it may stand for; that may again be such a thing."""
        yield from self._bound(self.syntax.tree.body, self.module)
        for cls in self.syntax.by_type[ast.ClassDef]:
            if isinstance(cls, ast.ClassDef) and (name := self.syntax.qualname(cls)) is not None:
                yield from self._bound(cls.body, f"{self.module}.{name}")
            for method in cls.body if isinstance(cls, ast.ClassDef) else ():
                if isinstance(method, _FUNCTIONS) and method.name in INITIALISERS:
                    yield from self._kept(f"{self.module}.{self.syntax.qualname(cls)}", method)
        for call in self.syntax.by_type[ast.Call]:
            if isinstance(call, ast.Call) and (call.args or call.keywords):
                yield from self._made(call)
        for function in self.syntax.functions:
            name = self.syntax.qualname(function)
            if name is not None and "." not in name:
                for n in self.syntax.own(function, ast.Return):
                    assert isinstance(n, ast.Return)
                    yield from ((f"{self.module}.{name}()", what) for what in self._of(n.value, function))

    def _bound(self, body: list[ast.stmt], within: str) -> Iterator[tuple[str, str]]:
        """What names of a module or class are bound to without a call; a class has tables of what configures it."""
        unmeant = (ast.Call,) if within == self.module else (ast.Call, ast.Dict, ast.List, ast.Tuple)
        for s in body:
            targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
            value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None
            if not isinstance(value, unmeant) or _is_partial(value):
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                yield from ((f"{within}.{name}", what) for name in names for what in self._of(value, None))

    def _kept(self, cls: str, method: FunctionNode) -> Iterator[tuple[str, str]]:
        own = self_name(method) or ""
        for n in own_nodes(method):
            targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(n, ast.AnnAssign) else []
            for target in targets:
                name = attribute_of(target, own)
                if name is not None and isinstance(n, (ast.Assign, ast.AnnAssign)):
                    yield from ((f"{cls}.{name}", what) for what in self._of(n.value, method))

    def _made(self, call: ast.Call) -> Iterator[tuple[str, str]]:
        """What ``call`` hands over, where it makes an instance of a class, or has a class above do so."""
        if not (classes := self._classes(call)):
            return
        function = self.syntax.function_of(call)
        handed = [*((str(i), a) for i, a in enumerate(call.args)), *((k.arg, k.value) for k in call.keywords)]
        for place, what in [(p, what) for p, e in handed if p is not None for what in self._of(e, function)]:
            yield from ((f"{cls}({place})", what) for cls in classes)

    def _classes(self, call: ast.Call) -> list[str]:
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
                cls = self.syntax.class_of(call)
                texts = [dotted(base) for base in cls.bases] if cls is not None else []
            case _:
                texts = [dotted(call.func)]
        return [self.resolve(t) for t in texts if t is not None and t.rpartition(".")[2][:1].isupper()]

    def _of(self, e: ast.expr | None, function: FunctionNode | None, depth: int = _LOCALS) -> Iterator[str]:
        """What ``e``, in ``function``, may be, of what can be a function."""
        match e:
            case ast.Name(id=name):
                yield from self._named(name, function, depth)
            case ast.Attribute():
                yield from self._attribute(e, function)
            case ast.Lambda(body=body):
                calls = (n.func for n in ast.walk(body) if isinstance(n, ast.Call))
                yield from (what for called in calls for what in self._of(called, function, depth))
            case ast.Call(args=[first, *_]) if _is_partial(e):
                yield from self._of(first, function, depth)
            case ast.Call(func=func):
                yield from (f"{what}()" for what in self._of(func, function, depth) if not what.endswith(")"))
        for part in _parts(e):
            yield from self._of(part, function, depth)

    def _attribute(self, e: ast.Attribute, function: FunctionNode | None) -> Iterator[str]:
        text = dotted(e)
        root = (text or "").partition(".")[0]
        method = self.syntax.method_of(e) if function is not None else None
        if text is not None and (root in self.syntax.imports_anywhere or (function is None and root)):
            yield self.resolve(text)
        elif method is not None and dotted(e.value) == self_name(method):
            yield f"self.{e.attr}"

    def _named(self, name: str, function: FunctionNode | None, depth: int) -> Iterator[str]:
        if function is None or not self.syntax.binds(function, name):
            if self.syntax.binds(self.syntax.tree, name) or name in self.syntax.imports_anywhere:
                yield self.resolve(name)
            return
        for value in self._values(function).get(name, ()) if depth else ():
            yield from self._of(value, function, depth - 1)
        arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        cls = self.syntax.parents[function]
        if isinstance(cls, ast.ClassDef) and function.name in INITIALISERS:
            made = f"{self.module}.{self.syntax.qualname(cls)}"
            if name in arguments[1:] or any(a.arg == name for a in function.args.kwonlyargs):
                yield f"{made}({name})"
            if name in arguments[1:]:
                yield f"{made}({arguments.index(name) - 1})"
        if any(isinstance(n, _FUNCTIONS) and n.name == name for n in function.body):
            outer = self.syntax.qualname(function)
            yield f"{self.module}.{outer}"  # what stands in a function goes with that

    def _values(self, function: FunctionNode) -> dict[str, list[ast.expr]]:
        if function not in self._locals:
            found: defaultdict[str, list[ast.expr]] = defaultdict(list)
            for n in own_nodes(function):
                for target in n.targets if isinstance(n, ast.Assign) else []:
                    if isinstance(target, ast.Name) and isinstance(n, ast.Assign):
                        found[target.id].append(n.value)
            self._locals[function] = dict(found)
        return self._locals[function]


def _is_partial(e: ast.expr | None) -> bool:
    return isinstance(e, ast.Call) and last_name(e.func) == "partial"


def _parts(e: ast.expr | None) -> list[ast.expr]:
    """What ``e`` is one of, or takes one out of."""
    match e:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return parts
        case ast.Subscript(value=value):
            return [value]
    return one_of(e)
