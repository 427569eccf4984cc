"""Who sets attributes, writes into what they hold, and where that goes: what one file tells, for the index over all.

A *place* is the name of an attribute (of whatever object; "*" stands for any part of a name that is computed), a global
("~name"), or what functions of a name give back, and what classes make ("name()"); what the object there holds, in a
list or the like, is the place with "[]". A write is traced back to the places that
the object may come from: which expressions may be a part of which others counts, not their order.
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
from patcher.facts.project.touch import How, Touch
from patcher.facts.syntax.classes import INITIALISERS, REGISTRATIONS, pairs, self_name
from patcher.facts.syntax.tree import Syntax, dotted, last_name
from patcher.facts.syntax.written import all_parameters, defaults, one_of
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables.wording import suggests_change, suggests_configuration

Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BY_NAME = frozenset("setattr delattr __setattr__ __delattr__".split())
#: What gives all attributes of an object without naming them.
_SWEEPING = frozenset("_buffers __dict__ vars".split())
#: Methods whose result holds what the object does.
_CARRYING = frozenset("values copy __iter__ union".split())
_ELEMENTS = frozenset("get pop popitem setdefault __getitem__ __next__ popleft".split())
#: Attributes that show the memory of a tensor.
_SHOWN = frozenset("data T mT H mH real imag __array_interface__".split())
#: What puts containers together.
_JOINING = (ast.Add, ast.BitOr)
#: How ``unittest.mock`` puts something in the place of an attribute for a while.
_PATCHING = re.compile(r"(^|\.)patch(\.object|\.multiple)?$")
_LIBRARIES = ("torch.", "numpy.", "np.", "math.")
_HOLDERS = frozenset("Buffer Parameter ParameterList ParameterDict BufferDict".split())
#: Classes in annotations that say nothing of objects of the project.
_PLAIN = frozenset("Optional Union List Tuple Dict Set Sequence Iterable Callable Any None True False".split())
_VIEWING_FUNCTIONS = tables.VIEWS | _HOLDERS
_VIEWING_METHODS = tables.VIEWS | _CARRYING
_CHANGING = tables.CONTAINER_WRITES | tables.ARRAY_WRITES
#: A place, the classes that the object whose attribute it is may be of (none: of any), and how deep in containers what
#: is there is held (-1: something that it holds).
Source = tuple[str, tuple[str, ...], int]


#: How many containers around a place are told apart: a name may be made of itself, with one more each time.
_DEEPEST = 2


class Touches:
    """One look at a module: ``found``."""

    def __init__(self, syntax: Syntax, module: str, imports: dict[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.owner = owner
        self.found: set[Touch] = set()
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
        looks: list[tuple[Callable[[Any], None], tuple[type[ast.AST], ...]]] = [
            (self._assign, (ast.Assign, ast.AnnAssign)),
            (self._augmented, (ast.AugAssign,)),
            (self._attribute, (ast.Attribute,)),
            (self._subscript, (ast.Subscript,)),
            (self._call, (ast.Call,)),
            (self._return, (ast.Return, ast.Yield, ast.YieldFrom)),
            (self._lambda, (ast.Lambda,)),
        ]
        for look, kinds in looks:
            for n in (n for kind in kinds for n in syntax.by_type[kind]):
                look(n)
        for name in self._globals:
            self.found.add(Touch(f"~{name}", How.SET))
        filled = {t.to[1:].removesuffix("[]") for t in self.found if t.to[:1] == "~"}
        for n in syntax.by_type[ast.Name] if filled else ():
            if n.id in filled and isinstance(n.ctx, ast.Load) and self._scope(n) is None and (read := owner(n)[0]):
                self.found.add(Touch(f"~{n.id}", How.GOES, inside=self._function(read), to="<"))

    # --- what names stand for ---------------------------------------------------------------------------------------

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
                named = _pattern(index)
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
            yield _pattern(args[-1]), self.owners(func.value), 0
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
            named = _pattern(args[1])
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

    # --- what happens -----------------------------------------------------------------------------------------------

    def _add(self, at: ast.AST, sources: Iterable[Source], how: How, listed: bool = False) -> None:
        inside = self._function(self.owner(at)[0])
        own, _, method = inside.rpartition(".")
        for place, owners, depth in sources:
            if depth <= 0:
                early = method in INITIALISERS and owners == (own,)
                where = place if not depth else f"{place}[]"
                self.found.add(Touch(where, how, owners, inside, at.lineno, early, listed))  # type: ignore[attr-defined]

    def _goes(self, at: ast.AST, value: ast.expr, to: str, owners: tuple[str, ...] = ()) -> None:
        """``value`` becomes a part of ``to``."""
        inside, line = self._function(self.owner(at)[0]), at.lineno  # type: ignore[attr-defined]
        for place, whose, depth in set(self.sources(value)):
            if not (place == to and whose == owners):
                start = place if depth >= 0 else f"{place}[]"
                end = to if depth <= 0 else f"{to}[]"
                self.found.add(Touch(start, How.GOES, whose, inside, line, to=end, to_owners=owners))

    def _write(self, at: ast.AST, e: ast.expr) -> None:
        """The object ``e`` is written into: what it comes from is changed, and something within what holds it."""
        self._add(at, self.sources(e), How.WRITTEN)
        while isinstance(e, (ast.Attribute, ast.Subscript, ast.Call)):
            held = isinstance(e, ast.Attribute)
            e = e.func if isinstance(e, ast.Call) else e.value
            if held and not isinstance(e, ast.Name):
                self._add(at, self.sources(e), How.WITHIN)

    def _assign(self, n: ast.Assign | ast.AnnAssign) -> None:
        for target in n.targets if isinstance(n, ast.Assign) else (n.target,):
            for t, v in pairs(target, n.value) if n.value is not None else [(target, ast.Constant(None))]:
                value = v or element_of(n.value or target)
                while isinstance(t, (ast.Subscript, ast.Starred)):
                    value = ast.List([value]) if isinstance(t, ast.Subscript) else value
                    t = t.value
                place, owners = self._target(n, t)
                if not place:
                    continue
                self._goes(n, value, place, owners)
                for made in self._annotated(n.annotation) if isinstance(n, ast.AnnAssign) else ():
                    inside = self._function(self.owner(n)[0])
                    self.found.add(Touch(made, How.GOES, (), inside, n.lineno, to=place, to_owners=owners))

    def _target(self, n: ast.AST, t: ast.expr) -> tuple[str, tuple[str, ...]]:
        """The place that ``n`` assigns, and the classes of its object; "" for a local name."""
        home = self.syntax.parents[n]
        if isinstance(t, ast.Attribute):
            return t.attr, self.owners(t.value) or self._class_made(t.value)
        if isinstance(t, ast.Name) and isinstance(home, ast.ClassDef):
            return t.id, (self._function(home),)
        return (f"~{t.id}", ()) if isinstance(t, ast.Name) and self._scope(t) is None else ("", ())

    def _class_made(self, e: ast.expr) -> tuple[str, ...]:
        """The class that ``e``, a name that is bound once, holds an object of."""
        made = self._bound.get((self._scope(e), e.id), []) if isinstance(e, ast.Name) else []
        text = dotted(made[0].func) if len(made) == 1 and isinstance(made[0], ast.Call) else None
        return (self._resolved(text),) if text is not None and text.rpartition(".")[2][:1].isupper() else ()

    def _augmented(self, n: ast.AugAssign) -> None:
        if isinstance(n.target, (ast.Name, ast.Subscript)):
            self._write(n, n.target)

    def _attribute(self, n: ast.Attribute) -> None:
        parent = self.syntax.parents[n]
        if isinstance(n.ctx, ast.Load):
            return
        owners = self.owners(n.value)
        own = isinstance(n.value, ast.Name) and n.value.id == self.owner(n)[1] and bool(owners)
        if isinstance(parent, ast.AugAssign):
            self._add(n, [(n.attr, owners, 0)], How.WRITTEN)
        if not own:  # those are what the summary of the class has
            self._add(n, [(n.attr, owners, 0)], How.SET)
            self._add(n, self.sources(n.value), How.WRITTEN if n.attr == "data" else How.WITHIN)

    def _subscript(self, n: ast.Subscript) -> None:
        if not isinstance(n.ctx, ast.Load):
            self._write(n, n.value)
            if any(place == "*" for place, _, _ in self.sources(n.value)):  # ``vars(o)["name"] = ...``
                self._add(n, self.sources(n), How.SET)

    def _call(self, n: ast.Call) -> None:
        func, args = n.func, n.args
        last, what = last_name(func), self._imported(func)
        if last in _BY_NAME or last in REGISTRATIONS:
            self._by_name(n, last)
        elif _PATCHING.search(dotted(func) or ""):
            self._patched(n, last)
            self._handed(n, last, what)
        elif last == "__new__":
            if args and not (isinstance(func, ast.Attribute) and last_name(func.value) == "super"):
                self._add(n, [("*", (self._resolved(dotted(args[0]) or "?"),), 0)], How.SET)
        elif last == "functional_call" and len(args) > 1:
            keys = args[1].keys if isinstance(args[1], ast.Dict) else [None]
            self._add(n, [(_pattern(key).rpartition(".")[2], (), 0) for key in keys], How.SET)
        else:
            self._handed(n, last, what)

    def _handed(self, n: ast.Call, last: str, what: str | None) -> None:
        """A function that is not known for what it does to its arguments, but by its name."""
        func = n.func
        changes = last in _CHANGING or suggests_change(last)
        if isinstance(func, ast.Attribute) and what is None and changes:
            self._write(n, func.value)
            if last in tables.CONTAINER_WRITES:  # ``vars(o).update(...)``
                self._add(n, (s for s in self.sources(func.value) if s[0] == "*"), How.SET)
        elif changes and last[:1].islower() and last not in self._defined and not hasattr(builtins, last):
            for a in n.args:  # a function that changes something may change what it is given
                if isinstance(a, ast.Attribute):
                    self._write(n, a)
        self._hands_on(n, last, what)

    def _by_name(self, n: ast.Call, last: str) -> None:
        """An attribute is set under a name that is an argument."""
        plain = not isinstance(n.func, ast.Attribute) or (last not in REGISTRATIONS and len(n.args) > 2)
        owner, rest = (n.args[0], n.args[1:]) if plain and n.args else (n.func, n.args)
        if isinstance(owner, ast.Attribute) and owner is n.func:
            owner = owner.value
        given = {k.arg: k.value for k in n.keywords}
        rest = [*(given[k] for k in ("name",) if k in given), *rest, *(given[k] for k in ("tensor",) if k in given)]
        rest = rest or [ast.Starred(owner)]  # all is handed on: the name is not known
        owners = self.owners(owner)
        names = self._names(rest[0])
        if "*" in names and (suggests_configuration(last_name(owner)) or any(map(self._is_layer, rest[1:2]))):
            return  # configuration is set anew, or a layer is exchanged for another one
        if not owners:
            self._add(n, self.sources(owner), How.WITHIN)
        for name in names:
            self._add(n, [(name, owners, 0)], How.SET, listed=last in REGISTRATIONS)
            for value in rest[1:2]:
                self._goes(n, value, name, owners)

    def _patched(self, n: ast.Call, last: str) -> None:
        """``patch.object(o, "name", value)``, ``patch("module.Class.name")``, ``patch.multiple(o, name=value)``."""
        owner = n.args[0] if n.args and last != "patch" else None
        owners = self.owners(owner) if owner is not None else ()
        if owner is not None and not owners:
            self._add(n, self.sources(owner), How.WITHIN)
        names = [k.arg or "*" for k in n.keywords] if last == "multiple" else [_pattern(a) for a in n.args[1:2]]
        if last == "patch":  # of a path, with the name last
            names = [_pattern(a).rpartition(".")[2] for a in n.args[:1] if "." in _pattern(a)]
        self._add(n, [(name, owners, 0) for name in names], How.SET)

    def _is_layer(self, value: ast.expr) -> bool:
        """Whether ``value`` is a parameter that is to be a module."""
        function = self.owner(value)[0]
        arguments = function.args.args if isinstance(function, _FUNCTIONS) and isinstance(value, ast.Name) else []
        found = [a.annotation for a in arguments if a.arg == value.id]  # type: ignore[attr-defined]
        return any(a is not None and self._imported(a) in ("torch.nn.Module", "nn.Module") for a in found)

    def _names(self, key: ast.expr, depth: int = 4) -> set[str]:
        """The names that ``key`` may be: those of a list that is gone through, or one with "*" for what is computed."""
        found: set[str] = set()
        for value in self._values(key) if depth else ():
            lists = self._values(value.value) or [value.value] if isinstance(value, ast.Subscript) else [value]
            for made in lists:  # a name is one of a list that is gone through, or a text
                parts = made.elts if isinstance(made, (ast.Tuple, ast.List)) else [made]
                found |= {name for part in parts for name in self._names(part, depth - 1)}
        return found or {_pattern(key)}

    def _values(self, e: ast.expr) -> list[ast.expr]:
        """All that the local name ``e`` is bound to; nothing for anything else, and for parameters."""
        scope = self._scope(e) if isinstance(e, ast.Name) else None
        if scope is None or not isinstance(e, ast.Name) or e.id in self._of(scope):
            return []
        return self._bound.get((scope, e.id), [])

    def _hands_on(self, n: ast.Call, last: str, what: str | None) -> None:
        """What a container that is kept, or an object of a class, is given."""
        given = [*n.args, *(k.value for k in n.keywords)]
        if isinstance(n.func, ast.Attribute) and last in tables.CONTAINER_WRITES and what is None:
            holder = n.func.value
            while isinstance(holder, ast.Subscript):
                holder = holder.value
            place, owners = self._target(n, holder)  # a local name is bound to what it holds
            for a in given if place else ():
                self._goes(n, ast.List([a]), place, owners)
        elif last[:1].isupper() and last not in _HOLDERS:
            for a in given:
                self._goes(n, a, f"{what or self._resolved(last)}[")

    def _return(self, n: ast.Return | ast.Yield | ast.YieldFrom) -> None:
        function = self.syntax.function_of(n)
        if n.value is None or function is None:
            return
        value = ast.List([n.value]) if isinstance(n, ast.Yield) else n.value
        self._goes(n, value, f"{function.name}()")
        own = self.syntax.class_of(function) if function.name == "__iter__" else None
        if own is not None:  # who goes through the object gets them
            self._goes(n, value, f"{own.name}()")

    def _lambda(self, n: ast.Lambda) -> None:
        """What is returned by a function of a name: ``tensors = lambda m: m.buffers()``."""
        around = self.syntax.parents[n]
        for target in around.targets if isinstance(around, ast.Assign) and around.value is n else ():
            self._goes(n, n.body, f"{last_name(target)}()")


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


def _pattern(key: ast.expr | None) -> str:
    """The name that ``key`` is, with "*" for what is computed."""
    match key:
        case ast.Constant(value=str() as name):
            return name
        case ast.JoinedStr(values=parts):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "*" for p in parts)
    return "*"
