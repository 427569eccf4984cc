"""What one function does to memory and attributes, told from its syntax alone, for the index over all files."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from patcher.facts.project.scripted import SCRIPT
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name, walk
from patcher.facts.syntax.written import all_parameters, one_of
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Makers of what nobody else holds.
_FRESH = (
    *(ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp),
    *(ast.Constant, ast.BinOp, ast.Compare, ast.JoinedStr),
)
#: Nodes that may do something.
_TELLING = (
    *(ast.Attribute, ast.Subscript, ast.AugAssign, ast.Global, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.With, ast.AsyncWith, ast.Return, ast.Call),
)
#: Nodes that bind the names in their target.
_TARGETING = (ast.For, ast.AsyncFor, ast.comprehension, ast.AnnAssign, ast.NamedExpr)
#: Nodes that bind names.
_BINDING = (ast.Assign, ast.Global, ast.Nonlocal, *_TARGETING, ast.withitem)
#: All that is looked at; attributes only where they are set.
_LOOKED_AT = frozenset({*_TELLING, *_BINDING, *_FUNCTIONS, ast.arg}) - {ast.Attribute}
#: Methods of an unknown object that change nothing, as far as their names go: a class of the project may say otherwise.
QUIET_METHODS = api.TENSOR_ONLY | tables.VIEWS | tables.LOOKING_METHODS | api.HOST_READS | frozenset(api.CASTS)
#: Begins, among calls, one of what is given, or comes out of a call: "?(a,b)" has these keywords.
UNNAMED = "?("
_NEW_TENSORS = api.TENSOR_ONLY - tables.VIEWS - tables.LOOKING_METHODS
_QUIET_MODULES = tables.LOOKING_MODULES | tables.CARRYING_MODULES
_SETTING = tables.CONTAINER_WRITES | {"__setattr__", "__delattr__"}
_WRITING_METHODS = tables.CONTAINER_WRITES | tables.WRITING_SPECIAL


@dataclass(frozen=True)
class Does:
    """What a call of a function may do, what it calls left out.

    ``own``: attributes that it sets on its first parameter; ``sets``: on other objects ("*": a name that is not known;
    "~name": a global). ``writes``: it changes memory or a container that it did not make. ``runs``: it runs code that
    is not read; ``invokes``: it calls what it is given, or a method of it. ``gives``: the result may be, or be a part
    of, what it is given; ``world``: or what others hold. ``calls``: what it calls besides (after "=" when it hands on
    but what it was given, and constants), as "self.m", ".m" (of an unknown object), "?m" (the same, harmless unless a
    class of the project has a method of that name), "?.m" (of what it is given, as ``invokes`` has it), as `UNNAMED` or
    dotted names. ``reshapes``: it gives a tensor that it did not make other sizes. ``fills``: functions, by name, that
    it writes into results of: that is a write where such a function gives what others hold.
    """

    own: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    writes: bool = False
    runs: bool = False
    gives: bool = False
    world: bool = False
    invokes: bool = False
    calls: frozenset[str] = frozenset()
    reshapes: bool = False
    fills: frozenset[str] = frozenset()

    def __or__(self, other: Does) -> Does:
        """Both."""
        return Does(
            self.own | other.own,
            self.sets | other.sets,
            self.writes or other.writes,
            self.runs or other.runs,
            self.gives or other.gives,
            self.world or other.world,
            self.invokes or other.invokes,
            self.calls | other.calls,
            self.reshapes or other.reshapes,
            self.fills | other.fills,
        )


NOTHING = Does()
ANYTHING = Does(runs=True)


def does(
    function: FunctionNode | None,
    nodes: list[ast.AST],
    resolve: Callable[[str], str | None],
    method: bool,
    scripts: Collection[ast.AST] = (),
) -> Does:
    """What ``function`` does.

    ``nodes``: all that stand in it, or in a part of it (None: of the top level); ``resolve``: an imported name to what
    it stands for; ``method``: it stands in a class, so that its first parameter is the instance; ``scripts``: as
    `scripted` has them.
    """
    return _Reading(function, nodes, resolve, method, scripts).result()


def _unnamed(n: ast.Call) -> str:
    return f"{UNNAMED}{','.join(sorted(k.arg for k in n.keywords if k.arg is not None))})"


class _Reading:
    def __init__(
        self,
        function: FunctionNode | None,
        nodes: list[ast.AST],
        resolve: Callable[[str], str | None],
        method: bool,
        scripts: Collection[ast.AST],
    ) -> None:
        self.function = function
        self.scripts = scripts
        by_type: defaultdict[type[ast.AST], list[Any]] = defaultdict(list)
        for n in nodes:
            kind = type(n)
            if kind in _LOOKED_AT or (kind is ast.Attribute and type(n.ctx) is not ast.Load):  # type: ignore[attr-defined]
                by_type[kind].append(n)
        self.by_type = by_type
        self.resolve = resolve
        a = function.args if function is not None else ast.arguments([], [], None, [], [], None, [])
        self.first = a.args[0].arg if a.args and method else None
        self.parameters = {p.arg for p in all_parameters(a)}
        decorators = function.decorator_list if function is not None else []
        self.of_class = any(dotted(d) == "classmethod" for d in decorators)
        self.nested = {n.name for kind in _FUNCTIONS for n in by_type[kind]}
        #: Names of what the function has made, or functions of the project whose results they are.
        self.made = self._made_names()
        self.fresh = {name for name, calls in self.made.items() if not calls}
        self.fills: set[str] = set()
        self.own: set[str] = set()
        self.sets: set[str] = set()
        self.calls: set[str] = set()
        self.writes = self.runs = self.gives = self.world = self.invokes = self.reshapes = False
        self.given = self.parameters | self._handed_names()

    def result(self) -> Does:
        for kind in _TELLING:
            for node in self.by_type[kind]:
                self._node(node)
        calls = frozenset(self.calls)
        own, sets = frozenset(self.own), frozenset(self.sets)
        gives = self.gives, self.world
        fills = frozenset(self.fills)
        return Does(own, sets, self.writes, self.runs, *gives, self.invokes, calls, self.reshapes, fills)

    def _handed_names(self) -> set[str]:
        """Local names that stand for a parameter, or a function in this one."""
        pairs = [(n.targets[0], n.value) for n in self.by_type[ast.Assign] if len(n.targets) == 1]
        named = [(t.id, v) for t, v in pairs if isinstance(t, ast.Name)]
        handed = self.parameters | self.nested
        found = {t for t, v in named if isinstance(v, ast.Name) and v.id in handed}
        return found - {t for t, v in named if not (isinstance(v, ast.Name) and v.id in handed)}

    def _made_names(self) -> dict[str, frozenset[str]]:
        """Local names that only ever stand for what the function itself has made, or functions that it calls."""
        made: defaultdict[str, set[str]] = defaultdict(set)
        by_type = self.by_type
        other = {n.arg for n in by_type[ast.arg]}
        targets: list[ast.expr] = [n.target for kind in _TARGETING for n in by_type[kind]]
        targets += [n.optional_vars for n in by_type[ast.withitem] if n.optional_vars is not None]
        for n in (*by_type[ast.Global], *by_type[ast.Nonlocal]):
            other.update(n.names)
        for n in by_type[ast.Assign]:
            if len(n.targets) > 1 or not isinstance(n.targets[0], ast.Name):
                targets += n.targets
            elif n.targets[0].id not in other:
                makers = self._makers(n.value)
                if makers is None:
                    other.add(n.targets[0].id)
                else:
                    made[n.targets[0].id] |= makers
        for t in targets:
            if isinstance(t, ast.Name):
                other.add(t.id)
            elif not _is_attribute_of_name(t):
                other |= {m.id for m in walk(t) if isinstance(m, ast.Name)}
            else:
                other.add(t.value.id)  # type: ignore[attr-defined]
        bound = other | made.keys()
        return {name: frozenset(m) for name, m in made.items() if name not in other and m.isdisjoint(bound)}

    def _makers(self, e: ast.expr) -> set[str] | None:
        """The functions by name, outside of this one, whose result ``e`` may be; None where it is held elsewhere.

        There is none where ``e`` is new in any case.
        """
        if self._is_fresh(e):
            return set()
        match e:
            case ast.BoolOp() | ast.IfExp():
                found = [self._makers(part) for part in one_of(e)]
                return None if None in found else {name for makers in found if makers for name in makers}
            case ast.Call(func=func) if (text := dotted(func)) is not None:
                what = self.resolve(text)
                local = text in self.nested or text in self.parameters or hasattr(builtins, text)
                named = what if what is not None else text if isinstance(func, ast.Name) and not local else None
                outside = named is not None and not named.startswith(("torch.", "numpy.", "np."))
                return {named} if outside and named is not None else None
        return None

    def _is_fresh(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call):
            text = dotted(e.func)
            what = self.resolve(text) if text is not None else None
            if what is not None and what.startswith("torch."):
                name = what.rpartition(".")[2]
                return name not in tables.VIEWS and not in_place(e, name) and not name[:1].isupper()
            if isinstance(e.func, ast.Attribute):
                return e.func.attr in _NEW_TENSORS
            return text in ("list", "dict", "set", "int", "float", "bool", "len", "str")
        return isinstance(e, _FRESH)

    def _write(self, e: ast.expr, how: str = "") -> None:
        while isinstance(e, ast.Subscript):
            e = e.value
        if not isinstance(e, ast.Name) or e.id not in self.made:
            self.writes = True
        elif not self.made[e.id]:
            return
        else:
            self.fills |= self.made[e.id]
        self.reshapes |= how in tables.RESIZING

    def _set(self, owner: ast.expr, name: str) -> None:
        mine = isinstance(owner, ast.Name) and owner.id == self.first
        (self.own if mine else self.sets).add(name)
        if name == "data" and not mine:
            self._write(owner, name)

    def _node(self, n: ast.AST) -> None:
        match n:
            case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()):
                self._set(owner, attr)
            case ast.Subscript(value=held, slice=key, ctx=ast.Store() | ast.Del()):
                if (holder := owner_of_dict(held)) is not None:
                    self._set(holder, constant_name(key))
                self._write(held)
            case ast.AugAssign(target=ast.Name() as name):
                self._write(name)  # a number, when it is one, says so nowhere
            case ast.AugAssign(target=ast.Attribute()):
                self.writes = True
            case ast.Global(names=names):
                self.sets |= {f"~{name}" for name in names}
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                self.runs = True
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    e = item.context_expr
                    text = dotted(e.func if isinstance(e, ast.Call) else e)
                    self.runs |= (self.resolve(text) if text else None) not in tables.QUIET_CONTEXTS
            case ast.Return(value=ast.expr() as value):
                self._hands_out(value)
            case ast.Call():
                self._call(n)

    def _hands_out(self, e: ast.expr) -> None:
        """What a caller gets may be something that it knows already."""
        match e:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                pass
            case _:
                parts = one_of(e)
        for part in parts:
            self._hands_out(part)
        held = not parts and not (isinstance(e, ast.Name) and e.id in self.fresh) and not self._is_fresh(e)
        self.gives |= held
        self.world |= held

    def _call(self, n: ast.Call) -> None:
        text = dotted(n.func)
        what = self.resolve(text) if text is not None else None
        for made in calls_made(n, what):
            if not isinstance(made.func, ast.Lambda):  # what that does is counted here
                self._call(made)
        if what is not None:
            self._function(n, what)
        elif isinstance(n.func, ast.Name):
            self._named(n, n.func.id)
        elif isinstance(n.func, ast.Attribute):
            self._method(n, n.func)
        else:
            self.runs = True
            self.calls.add(_unnamed(n))

    def _function(self, n: ast.Call, what: str) -> None:
        package, _, name = what.rpartition(".")
        root = what.partition(".")[0]
        if root == "torch":
            if in_place(n, name) or package.startswith(("torch.ops", "torch.distributed", "torch.library")):
                targets = [*n.args[:1], *(k.value for k in n.keywords if k.arg == "out")]
                for target in targets:
                    self._write(target, name)
            elif runs_what_it_gets(what):
                self.runs = True
        elif root in ("numpy", "np"):
            self.writes |= name in tables.NUMPY_WRITES or any(k.arg == "out" for k in n.keywords)
        elif root == "operator" and name in tables.OPERATOR_WRITES:
            for a in n.args[:1]:
                self._write(a)
        elif root not in _QUIET_MODULES:
            self._calls(n, what)

    def _named(self, n: ast.Call, name: str) -> None:
        if name == self.first and self.of_class:  # ``cls()``
            self.calls |= {"self.__init__", "?__new__", "?__post_init__"}
        elif (setting := set_by_name(n)) is not None:
            self._set(*setting)
        elif name in tables.LOOKING_BUILTINS or name in tables.CARRYING_BUILTINS:
            if name in ("getattr", "hasattr") and len(n.args) > 1 and isinstance(n.args[1], ast.Constant):
                self.calls.add(f"?{n.args[1].value!s}")
            self.calls |= {
                f"?{m}" for m in (*tables.LOOKING_BUILTINS.get(name, ()), *tables.CARRYING_BUILTINS.get(name, ()))
            }
        elif name in self.given:
            self.invokes = True
            self.calls.add(_unnamed(n))
        elif n in self.scripts:
            self.calls.add(SCRIPT)
        elif isinstance(getattr(builtins, name, None), type) or name in self.nested:
            pass  # the types of Python, its exceptions among them; what a nested function does is counted here
        else:
            self._calls(n, name)

    def _calls(self, n: ast.Call, what: str) -> None:
        plain = all(
            isinstance(a, ast.Constant) or (isinstance(a, ast.Name) and a.id in self.given) for a in arguments(n)
        )
        self.calls.add(f"={what}" if plain else what)

    def _method(self, n: ast.Call, func: ast.Attribute) -> None:
        name, holder = func.attr, func.value
        mine = isinstance(holder, ast.Name) and holder.id == self.first
        if (setting := set_by_name(n)) is not None:
            self._set(*setting)
        elif isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "super":
            self.calls.add(f"super.{name}")
        elif mine:
            self.calls.add(f"self.{name}")
        elif name.endswith("_") and not name.endswith("__"):
            self._write(holder, name)
        elif name in _WRITING_METHODS:
            self._write(holder)
            self.calls.add(f"?{name}")
        elif name in QUIET_METHODS:
            self.calls.add(f"?{name}")
            for k in n.keywords:
                if k.arg == "out":
                    self._write(k.value)
        else:
            if isinstance(holder, ast.Name) and holder.id in self.given:
                self.invokes = True
                self.calls.add(f"?.{name}")
                return
            text = dotted(func)
            self.calls.add(text if text is not None and text.startswith(f"{self.first}.") else f".{name}")


def _is_attribute_of_name(e: ast.expr) -> bool:
    return isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name)


def constant_name(key: ast.expr) -> str:
    """The name that ``key`` is, "*" when it is worked out."""
    return str(key.value) if isinstance(key, ast.Constant) else "*"


def owner_of_dict(e: ast.expr) -> ast.expr | None:
    """``o`` when ``e`` is the dict that holds the attributes of ``o``."""
    match e:
        case ast.Attribute(value=owner, attr="__dict__") | ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return owner
    return None


def set_by_name(call: ast.Call) -> tuple[ast.expr, str] | None:
    """The object of which ``call`` sets or deletes an attribute, and its name, "*" for any."""
    func, args = call.func, call.args
    name = last_name(func)
    if name in ("setattr", "delattr") and isinstance(func, ast.Name) and len(args) > 1:
        return args[0], constant_name(args[1])
    if not isinstance(func, ast.Attribute) or name not in _SETTING:
        return None
    if name in tables.CONTAINER_WRITES:
        of = owner_of_dict(func.value)
        return (of, "*") if of is not None else None
    if len(args) == (3 if name == "__setattr__" else 2):  # object.__setattr__(o, "name", value)
        return args[0], constant_name(args[1])
    return (func.value, constant_name(args[0])) if args else None


def in_place(call: ast.Call, name: str) -> bool:
    """Whether a torch function or tensor method of that name writes to one of its arguments."""
    if name.endswith("__"):
        return name in tables.WRITING_SPECIAL
    if name.endswith("_") or (name.startswith("_foreach_") and name.endswith("_")):
        return True
    for k in call.keywords:
        if k.arg == "out" or (k.arg == "inplace" and not (isinstance(k.value, ast.Constant) and not k.value.value)):
            return True
        if k.arg is None:
            return True  # what stands in ``**options`` is not known
    flags = call.args[1:] if name in tables.FLAGGED else ()
    return any(isinstance(a, ast.Constant) and a.value is True for a in flags)


def calls_made(call: ast.Call, what: str | None) -> Iterator[ast.Call]:
    """The calls that a function of Python makes of one that it is given, as if they were written down.

    ``what``: the imported thing that is called. They are made here: they stand nowhere in the source.
    """
    func = call.func
    name = what or (f".{func.attr}" if isinstance(func, ast.Attribute) else last_name(func))
    place, keyword = tables.CALLING.get(name, (-1, ""))
    named = {k.arg: k.value for k in call.keywords}
    function = named.get(keyword) or next(iter(call.args[place : place + 1] if place >= 0 else ()), None)
    if function is None or isinstance(function, ast.Constant) or (name == "iter" and len(call.args) < 2):
        return
    rest = [func.value] if name == ".sort" else [a for a in arguments(call) if a is not function]  # type: ignore[attr-defined]
    for way in _given(name, rest):
        yield ast.copy_location(ast.Call(function, way, []), call)


def _given(name: str, rest: list[ast.expr]) -> list[list[ast.expr]]:
    """What each call of a function gets that ``name`` of Python calls, and is given with ``rest``."""
    elements = [element_of(a) for a in rest]
    if name in ("operator.call", "iter"):
        return [rest if name == "operator.call" else []]
    if name == "itertools.starmap":
        return [[element_of(e) for e in elements] * 4]
    if name in tables.FOLDING:
        return [[given, elements[0]] for given in (elements[0], *rest[1:])] if elements else []
    return [elements]


def element_of(e: ast.expr) -> ast.expr:
    """An element of ``e``, which is iterated over or taken apart."""
    return ast.Subscript(e, ast.Constant(None), ast.Load())


def runs_what_it_gets(what: str) -> bool:
    """Whether a function of torch calls a function that it is given, or hooks."""
    package, _, name = what.rpartition(".")
    running = ("torch.utils.checkpoint", "torch.func", "torch.autograd", "torch.utils._pytree", "torch.nn.parallel")
    return (
        package.startswith(running) or name in ("vmap", "map", "while_loop", "cond", "scan") or "higher_order" in what
    )


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    """All that a call is given."""
    for a in call.args:
        yield a.value if isinstance(a, ast.Starred) else a
    for k in call.keywords:
        yield k.value
