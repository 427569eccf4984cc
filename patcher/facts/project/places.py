"""What the expressions of a file may come from: which attributes, globals, and results of functions.

A *place* is the name of an attribute (of whatever object; "*" stands for any part of a name that is computed), a global
("~name"), or what functions of a name give back, and what classes make ("name()"); what the object there holds, in a
list or the like, is the place with "[]". Which expressions may be a part of which others counts, not their order.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from patcher.facts.flow.kept import kept
from patcher.facts.project.does import QUIET_METHODS, element_of
from patcher.facts.syntax.classes import pairs, self_name
from patcher.facts.syntax.tree import Syntax, dotted, last_name
from patcher.facts.syntax.written import all_parameters, defaults, one_of
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables.wording import suggests_configuration

Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What gives all attributes of an object without naming them.
_SWEEPING = frozenset("_buffers __dict__ vars".split())
#: Methods whose result holds what the object does.
_CARRYING = frozenset("values copy __iter__ union".split())
_ELEMENTS = frozenset("get pop popitem setdefault __getitem__ __next__ popleft".split())
#: Attributes that show the memory of a tensor.
_SHOWN = frozenset("data T mT H mH real imag __array_interface__".split())
#: What puts containers together.
_JOINING = (ast.Add, ast.BitOr)
_LIBRARIES = ("torch.", "numpy.", "np.", "math.")
HOLDERS = frozenset("Buffer Parameter ParameterList ParameterDict BufferDict".split())
#: Classes in annotations that say nothing of objects of the project.
_PLAIN = frozenset("Optional Union List Tuple Dict Set Sequence Iterable Callable Any None True False".split())
_VIEWING_FUNCTIONS = tables.VIEWS | HOLDERS
_VIEWING_METHODS = tables.VIEWS | _CARRYING
#: A place, the classes that the object whose attribute it is may be of (none: of any), and how deep in containers what
#: is there is held (-1: something that it holds).
Source = tuple[str, tuple[str, ...], int]


#: How many containers around a place are told apart: a name may be made of itself, with one more each time.
_DEEPEST = 2


class Places:
    """Expressions of one module."""

    def __init__(self, syntax: Syntax, module: str, imports: dict[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.owner = owner
        self._bound: defaultdict[tuple[ast.AST | None, str], list[ast.expr]] = defaultdict(list)
        self._sources: dict[tuple[ast.AST | None, str], frozenset[Source]] = {}
        self._open: set[tuple[ast.AST | None, str]] = set()
        self._globals = {name for n in syntax.by_type[ast.Global] for name in n.names}
        self._locals: defaultdict[ast.AST | None, set[str]] = defaultdict(set)
        for scope, names in syntax.bound.items():
            self._locals[owner(scope)[0]] |= names
        self._inner = {f.name: f for f in syntax.functions if owner(f)[0] is not f}
        self._defined = {d.name for d in (*syntax.functions, *syntax.by_type[ast.ClassDef])}
        self._bindings()

    def _bindings(self) -> None:
        by_type = self.syntax.by_type
        nodes: Iterable[Any] = (*by_type[ast.Assign], *by_type[ast.AnnAssign], *by_type[ast.NamedExpr])
        for n in (n for n in nodes if n.value is not None):
            for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                for t, v in pairs(target, n.value):
                    self._bind(t, v or element_of(n.value))
        nodes = (*by_type[ast.For], *by_type[ast.AsyncFor], *by_type[ast.comprehension])
        for n in nodes:
            self._bind(n.target, element_of(n.iter))
        for n in (n for n in by_type[ast.AugAssign] if isinstance(n.op, _JOINING)):
            self._bind(n.target, ast.BinOp(n.value, n.op, n.value))
        for n in by_type[ast.withitem]:
            if n.optional_vars is not None:
                self._bind(n.optional_vars, n.context_expr)
        self._given(by_type[ast.Call])
        for name, default in (
            d for f in (*by_type[ast.Lambda], *self._inner.values()) for d in defaults(f.args).items()
        ):
            if not isinstance(default, ast.Constant):
                self._bound[self.owner(default)[0], name].append(default)

    def _given(self, calls: Iterable[ast.Call]) -> None:
        for n in calls:
            given = [*n.args, *(k.value for k in n.keywords)]
            match n.func:
                case ast.Attribute(value=ast.Name(id=name) as holder, attr=attr) if attr in tables.CONTAINER_WRITES:
                    self._bound[self._scope(holder), name].append(ast.List(given))
                case ast.Name(id=name) if name in self._inner:
                    a = self._inner[name].args
                    for p in (*a.posonlyargs, *a.args, *a.kwonlyargs):
                        self._bound[self.owner(n)[0], p.arg] += given

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self._bound[self._scope(target), name].append(value)
            case ast.Subscript(value=held):
                self._bind(held, ast.List([value]))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind(element, element_of(value))
            case ast.Starred(value=inner):
                self._bind(inner, value)

    def _scope(self, name: ast.Name) -> ast.AST | None:
        """The outermost function whose local the name is; None for a global."""
        function = self.owner(name)[0]
        return function if name.id in self._locals[function] and name.id not in self._globals else None

    def _named(self, name: ast.Name) -> frozenset[Source]:
        scope = self._scope(name)
        if scope is None:
            ours = name.id in self._locals[None] or not hasattr(builtins, name.id)
            return frozenset({(f"~{name.id}", (), 0)} if ours else ())
        key = scope, name.id
        if key not in self._sources and key not in self._open:  # what is made of itself gets no more by that
            self._open.add(key)
            found = {s for value in self._bound.get(key, ()) for s in self.sources(value)}
            self._open.discard(key)
            if name.id in self._of(scope):
                found |= {(made, (), 0) for made in self._annotated(self._of(scope)[name.id].annotation)}
            self._sources[key] = frozenset(found)
        return self._sources.get(key, frozenset())

    @kept
    def _of(self, function: ast.AST) -> dict[str, ast.arg]:
        assert isinstance(function, _FUNCTIONS)
        return {p.arg: p for p in all_parameters(function.args)}

    def _annotated(self, annotation: ast.expr | None) -> Iterator[str]:
        """What makes objects of the classes that are named in ``annotation``."""
        for n in ast.walk(annotation) if annotation is not None else ():
            names = re.findall(r"[\w.]+", n.value) if isinstance(n, ast.Constant) and isinstance(n.value, str) else ()
            for text in filter(None, [dotted(n), *names]):
                last = text.rpartition(".")[2]
                if last[:1].isupper() and last not in _PLAIN and not self._resolved(text).startswith(_LIBRARIES):
                    yield f"{last}()"

    @kept
    def _function(self, function: ast.AST | None) -> str:
        inside = isinstance(function, (*_FUNCTIONS, ast.ClassDef))
        return f"{self.module}.{self.syntax.qualname(function)}" if inside else self.module  # type: ignore[arg-type]

    def sources(self, e: ast.expr) -> Iterator[Source]:
        """The places that ``e`` may come from, or a part of it, or what it shares memory with."""
        match e:
            case ast.Name():
                yield from self._named(e)
            case ast.Attribute():
                yield from self._held(e)
            case ast.Subscript(value=held, slice=index):
                yield from self._part(held, index)
            case ast.Call():
                yield from self._result(e)
            case ast.Starred(value=value) | ast.Await(value=value):
                yield from self.sources(value)
            case ast.BinOp(left=a, op=ast.Add() | ast.BitOr(), right=b):  # of containers; of tensors a new one is made
                yield from (s for part in (a, b) for s in self.sources(part) if s[0] == "*" or s[2] > 0)
        for part in one_of(e):
            yield from self.sources(part)
        for part in _elements(e):
            yield from self.sources(part.value) if isinstance(part, ast.Starred) else _in(self.sources(part))

    def _held(self, e: ast.Attribute) -> Iterator[Source]:
        value = e.value
        if isinstance(value, ast.Name) and value.id in self.imports and value.id[:1].islower():
            return
        if suggests_configuration(last_name(value)):
            return  # presumed: a Python value
        if e.attr in _SHOWN:
            yield from self.sources(value)
        else:
            yield "*" if e.attr in _SWEEPING else e.attr, self.owners(value), 0

    def _part(self, held: ast.expr, index: ast.expr | None = None) -> Iterator[Source]:
        """What an element of ``held`` may come from, or a view of it."""
        for place, owners, depth in self.sources(held):
            if place == "*":
                named = pattern(index)
                yield (place if named in _SWEEPING else named), owners, 0
                continue
            yield place, owners, max(depth - 1, -1)
            if depth == 0:
                yield place, owners, 0

    def _result(self, call: ast.Call) -> Iterator[Source]:
        func, args = call.func, call.args
        what, last = self._imported(func), last_name(func)
        if what is not None and what.startswith(_LIBRARIES):
            if last in _VIEWING_FUNCTIONS or last.endswith("_"):
                yield from (s for a in args for s in self.sources(a))
        elif isinstance(func, ast.Name) and what is None and hasattr(builtins, func.id):
            yield from self._builtin(func.id, args)
            for k in call.keywords if func.id == "dict" else ():
                yield from _in(self.sources(k.value)) if k.arg is not None else self.sources(k.value)
        elif isinstance(func, ast.Attribute) and what is None:
            yield from self._of_method(func, args)
        elif last:
            own = self.syntax.class_of(call) if last == "cls" else None
            yield f"{last if own is None else own.name}()", (), 0

    def _of_method(self, func: ast.Attribute, args: list[ast.expr]) -> Iterator[Source]:
        last = func.attr
        if last in ("__getattr__", "__getattribute__") and args:
            yield pattern(args[-1]), self.owners(func.value), 0
        elif last in _ELEMENTS:
            yield from self._part(func.value, args[0] if args else None)
        elif last == "items":
            yield from ((p, o, min(d + (d > 0), _DEEPEST)) for p, o, d in self.sources(func.value))
        elif last in _VIEWING_METHODS or (last.endswith("_") and not last.endswith("__")):
            yield from self.sources(func.value)
        elif last in self._defined or last not in QUIET_METHODS:
            yield f"{last}()", (), 0

    def _builtin(self, name: str, args: list[ast.expr]) -> Iterator[Source]:
        if name == "getattr" and len(args) > 1:
            named = pattern(args[1])
            yield ("*" if named in _SWEEPING else named), self.owners(args[0]), 0
        elif name == "vars" and args and not suggests_configuration(last_name(args[0])):
            yield "*", self.owners(args[0]), 0
        elif name == "next" and args:
            yield from self._part(args[0])
        elif name in tables.CARRYING_BUILTINS or name in ("map", "filter", "bool"):
            for a in args:
                yield from _in(self.sources(a)) if name in ("zip", "enumerate") else self.sources(a)
            if name in ("max", "min") and len(args) == 1:
                yield from self._part(args[0])

    def owners(self, e: ast.expr) -> tuple[str, ...]:
        """The dotted classes that ``e`` is an instance of, or is itself; none when that is not known."""
        if isinstance(e, ast.Call) and last_name(e.func) == "super":
            cls = self.syntax.class_of(e)
            return (self._function(cls),) if cls is not None else ()
        if not isinstance(e, ast.Name):
            return ()
        function, first = self.owner(e)
        home = self.syntax.parents.get(function) if function is not None else None
        if isinstance(home, ast.ClassDef) and e.id == first and self_name(function) == first:  # type: ignore[arg-type]
            return (self._function(home),)
        if (function, e.id) not in self._bound and e.id[:1].isupper():
            return (self._resolved(e.id),)
        return ()

    def _resolved(self, text: str) -> str:
        root, _, rest = text.partition(".")
        base = self.imports.get(root, f"{self.module}.{root}")
        return f"{base}.{rest}" if rest else base

    def _imported(self, func: ast.expr) -> str | None:
        text = dotted(func)
        return self._resolved(text) if text is not None and text.partition(".")[0] in self.imports else None


def _elements(e: ast.expr) -> list[ast.expr]:
    """What the container ``e`` is made of."""
    match e:
        case ast.DictComp(value=one) | ast.ListComp(elt=one) | ast.SetComp(elt=one) | ast.GeneratorExp(elt=one):
            return [one]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return parts
    return []


def _in(sources: Iterable[Source]) -> Iterator[Source]:
    """What a container with something of ``sources`` in it comes from."""
    return ((place, owners, min(depth + 1, _DEEPEST)) for place, owners, depth in sources)


def pattern(key: ast.expr | None) -> str:
    """The name that ``key`` is, with "*" for what is computed."""
    match key:
        case ast.Constant(value=str() as name):
            return name
        case ast.JoinedStr(values=parts):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "*" for p in parts)
    return "*"
