"""What one call does: what it writes, which attributes it sets, what it keeps, and what its result may be a part of."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.project.does import (
    ANYTHING,
    QUIET_METHODS,
    Does,
    arguments,
    calls_made,
    does,
    in_place,
    runs_what_it_gets,
    set_by_name,
)
from patcher.facts.syntax.classes import Store
from patcher.facts.syntax.tree import dotted
from patcher.facts.tables import call_effects as tables
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import FOREIGN, Kind, Value

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Called:
    """What a call does.

    ``writes``: the objects whose memory or contents it changes; with ``resizes`` also their shape, when ``deep`` also
    what they hold; ``afar``: and any that others hold. ``sets``: attributes that it sets, on whatever object ("*": of
    unknown name). ``runs``: code that is not read runs, which may write all that it can reach. ``gives``: what the
    result may be, or share memory with, or hold. ``keeps``: what may be held by others afterwards. ``world``: the
    result may be something that others hold.
    """

    writes: tuple[ast.expr, ...] = ()
    resizes: bool = False
    sets: frozenset[str] = frozenset()
    runs: bool = False
    gives: tuple[ast.expr, ...] = ()
    keeps: tuple[ast.expr, ...] = ()
    world: bool = False
    deep: bool = True
    afar: bool = False


QUIET = Called()


class Calls(Analysis):
    """The calls of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self._known: dict[ast.Call, Called] = {}
        self._hooks: dict[ast.ClassDef | None, bool] = {}

    def of(self, call: ast.Call) -> Called:
        """What ``call`` does."""
        known = self._known.get(call)
        if known is None:
            self._known[call] = _unknown(tuple(arguments(call)))
            known = self._known[call] = self._of(call)
        return known

    def _of(self, call: ast.Call) -> Called:
        given = tuple(arguments(call))
        if (setting := set_by_name(call)) is not None:
            return Called(sets=frozenset({setting[1]}), keeps=given)
        what = self.syntax.qualified(call.func)
        if what is not None:
            return self._function(call, what, given)
        match call.func:
            case ast.Name() as name if self.syntax.is_builtin(name) and not self.inference.is_rebound(name):
                return self._builtin(call, name.id, given)
            case ast.Name() as name:
                return self._local(call, name, given)
            case ast.Attribute() as method:
                return self._method(call, method, given)
        return _unknown((*given, call.func))

    def hidden(self, names: Iterable[str], given: tuple[ast.expr, ...] = ()) -> Called:
        """What methods of these names do that a statement or operator may call on ``given`` objects of the project."""
        total = Does()
        for name in names:
            total |= self.project.effects.behind(name)
        return self._by(total, given)

    def _by(self, does: Does, given: tuple[ast.expr, ...]) -> Called:
        """A call of functions of the project."""
        if does.runs or (does.invokes and any(map(self._may_be_called, given))):
            return _unknown(given)
        sets = does.own | does.sets
        return Called(
            writes=given if does.writes else (),
            resizes=does.writes,
            sets=sets,
            gives=given if does.gives else (),
            keeps=given if sets or does.writes else (),
            world=does.world,
            afar=does.writes,
        )

    def _may_be_called(self, e: ast.expr) -> bool:
        """Whether ``e`` may be a function, or an object that can be called."""
        value = self.inference.of(e)
        return not (value.is_tensor or value.is_number or value.python in ("str", "none", "container", "dtype"))

    # --- functions that are known by name ---------------------------------------------------------------------------

    def _function(self, call: ast.Call, what: str, given: tuple[ast.expr, ...]) -> Called:
        package, _, name = what.rpartition(".")
        root = what.partition(".")[0]
        if next(calls_made(call, what), None) is not None:
            return _unknown(given)
        if root == "torch":
            return self._torch(call, what, package, name, given)
        if root in ("numpy", "np"):
            written = given[:1] if name in tables.NUMPY_WRITES else ()
            written += tuple(k.value for k in call.keywords if k.arg == "out")
            return Called(writes=written, gives=given)
        if (found := self._of_project(what, given)) is not None:
            return found
        if root == "operator":
            return _writing(given)
        return QUIET if root in tables.LOOKING_MODULES else _unknown(given)

    def _torch(self, call: ast.Call, what: str, package: str, name: str, given: tuple[ast.expr, ...]) -> Called:
        if runs_what_it_gets(what) or any(isinstance(a, ast.Lambda) for a in given):
            return _unknown(given)
        renorms = name == "embedding" and (len(given) > 3 or any(k.arg == "max_norm" for k in call.keywords))
        writes = package.startswith(("torch.ops", "torch.distributed", "torch.library", "torch.nn.init"))
        if writes or renorms or in_place(call, name) or name in ("batch_norm", "instance_norm"):
            return _writing(given)
        if package in tables.NAMESPACES and not name[:1].isupper():
            return Called(gives=given if name in tables.VIEWS else ())
        if (
            package == "torch"
            and name.endswith("Tensor")
            and all(self.inference.of(a).kind is Kind.PYTHON for a in given)
        ):
            return QUIET  # of a list or a size it makes a new one
        return Called(gives=given)

    def _of_project(self, what: str, given: tuple[ast.expr, ...]) -> Called | None:
        """A call of a function or class of the project; None when ``what`` is none."""
        project = self.project
        if project.known_class(what) is not None:
            constructors = project.effects.constructors(what)
            if constructors is None:
                return _unknown(given)
            total = Does()
            for c in constructors:
                total |= project.effects.of(c)
            made = self._by(replace(total, own=frozenset(), gives=True), given)
            return replace(made, keeps=given if total.own else made.keeps)
        name = what if project.function(what) is not None else next(iter(project.re_exported(what)), None)
        return self._by(project.effects.of(name), given) if name is not None else None

    def _builtin(self, call: ast.Call, name: str, given: tuple[ast.expr, ...]) -> Called:
        ordered = any(k.arg == "key" for k in call.keywords)
        if ordered or any(isinstance(a, ast.Lambda) for a in given) or name in ("iter", "super"):
            return _unknown(given)
        if (special := tables.LOOKING_BUILTINS.get(name)) is not None:
            return self._special(special, given, QUIET)
        if (special := tables.CARRYING_BUILTINS.get(name)) is not None:
            if name == "getattr" and len(given) > 1 and isinstance(given[1], ast.Constant):
                special = (str(given[1].value),)
            return self._special(special, given, Called(gives=given, world=name == "getattr"))
        kind = getattr(builtins, name, None)
        return Called(gives=given) if isinstance(kind, type) and name not in ("map", "filter") else _unknown(given)

    def is_lazy(self, e: ast.expr) -> bool:
        """Whether ``e`` is a name for a generator made above: what that does, it does when it is gone through."""
        if not isinstance(e, ast.Name):
            return False
        values = [d.value for d in self.inference.definitions(e) if d.how == "assign" and d.value is not None]
        return any(isinstance(v, ast.GeneratorExp) for v in values)

    def _special(self, names: Iterable[str], given: tuple[ast.expr, ...], otherwise: Called) -> Called:
        """A builtin that calls special methods of what it is given, unless that is known for what it is."""
        if any(map(self.is_lazy, given)):
            return _unknown(given)
        if all(self._is_plain(a) for a in given):
            return otherwise
        hidden = self.hidden(names, given)
        if hidden == self.hidden((), given):
            return otherwise
        return replace(hidden, gives=(*otherwise.gives, *hidden.gives))

    def _is_plain(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor or a Python value, so that no code of the project stands behind its operators."""
        return self.inference.of(e).kind in (Kind.TENSOR, Kind.PYTHON)

    # --- names and methods ------------------------------------------------------------------------------------------

    def _local(self, call: ast.Call, name: ast.Name, given: tuple[ast.expr, ...]) -> Called:
        if definitions := self.inference.definitions(name):
            total = Does()
            for d in definitions:
                total |= self._told(d.node)
            return _unknown((*given, name)) if total.runs or total.calls else self._by(total, given)
        return self._of_project(f"{self.module}.{name.id}", given) or _unknown(given)

    def _told(self, function: ast.AST) -> Does:
        """What the syntax of a function in a function tells."""
        nodes = [n for n in ast.walk(function) if n is not function]
        odd = any(isinstance(n, (ast.Nonlocal, ast.FunctionDef, ast.Lambda)) for n in nodes)
        if odd or not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return ANYTHING
        return does(function, nodes, self._resolved, method=False)

    def _resolved(self, text: str) -> str | None:
        root, _, rest = text.partition(".")
        base = self.syntax.imports.get(root)
        return None if base is None else f"{base}.{rest}" if rest else base

    def _method(self, call: ast.Call, func: ast.Attribute, given: tuple[ast.expr, ...]) -> Called:
        of, name, holder = self.inference.of, func.attr, func.value
        if (module := of(func)).kind is Kind.MODULE:
            return self._module(func, module, given)
        receiver = of(holder)
        if receiver.kind is Kind.MODULE and receiver.module.startswith("torch.nn."):
            return _unknown((holder, *given))
        if receiver.is_tensor:
            return self._tensor_method(call, name, holder, given)
        if receiver == FOREIGN and name in tables.ARRAY_WRITES | tables.ARRAY_LOOKS:
            return Called(writes=(holder,) if name in tables.ARRAY_WRITES else (), gives=(holder, *given))
        if receiver.kind is Kind.PYTHON and receiver.python:
            return self._container_method(call, name, holder, given)
        functions = self.callees.of(call)
        if functions:
            total = Does()
            for f in functions:
                total |= self.project.effects.of(f)
            return self._by(total, (holder, *given))
        known = name in QUIET_METHODS | tables.CONTAINER_WRITES | tables.WRITING_SPECIAL or self._writes_by_name(name)
        if not known or self.inference.instance_attribute(func) is not None:
            return _unknown((holder, *given))
        behind = self._by(self.project.effects.behind(name), (holder, *given))
        as_what = self._container_method if name in tables.CONTAINER_WRITES else self._tensor_method
        plain = as_what(call, name, holder, given)
        if not self.project.named_methods(name):
            return plain
        return Called(
            writes=(*plain.writes, *behind.writes),
            resizes=plain.resizes or behind.resizes,
            sets=plain.sets | behind.sets,
            runs=plain.runs or behind.runs,
            gives=(*plain.gives, *behind.gives),
            keeps=(*plain.keeps, *behind.keeps),
            world=True,
            afar=behind.afar,
        )

    def _writes_by_name(self, name: str) -> bool:
        return name.endswith("_") and not name.endswith("__")

    def _tensor_method(self, call: ast.Call, name: str, holder: ast.expr, given: tuple[ast.expr, ...]) -> Called:
        if name in tables.RUNNING_METHODS or any(isinstance(a, ast.Lambda) for a in given):
            return _unknown((holder, *given))
        out = tuple(k.value for k in call.keywords if k.arg == "out")
        if in_place(call, name) or name in tables.WRITING_SPECIAL:
            written = out or (holder,)
            shared = given if name in ("set_", "swap_tensors") else ()
            return Called(writes=written, resizes=bool(out) or name in tables.RESIZING, gives=(holder, *out, *shared))
        return Called(gives=(holder,) if name in tables.VIEWS else ())

    def _container_method(self, call: ast.Call, name: str, holder: ast.expr, given: tuple[ast.expr, ...]) -> Called:
        if next(calls_made(call, None), None) is not None or any(isinstance(a, ast.Lambda) for a in given):
            return _unknown((holder, *given))
        if name in tables.CONTAINER_WRITES | tables.WRITING_SPECIAL:
            return Called(writes=(holder,), resizes=True, gives=(holder, *given), deep=False)
        return Called(gives=(holder, *given))

    # --- modules ----------------------------------------------------------------------------------------------------

    def _module(self, func: ast.expr, module: Value, given: tuple[ast.expr, ...]) -> Called:
        """A call of an nn module; hooks that others than its class and its file hang on it are not looked for."""
        kind = module.module
        if self._hooked(self.syntax.class_of(func)):
            return _unknown(given)
        if kind in tables.FLAGGED_MODULES:
            return Called(writes=given if self._flagged(func) else (), gives=given)
        if kind in tables.PURE_MODULES:
            return _unknown(given) if kind == "torch.nn.Embedding" and self._renorms(func) else QUIET
        if self.project.known_class(kind) is not None:
            functions = self.project.methods(kind, "forward")
            total = Does() if functions else ANYTHING
            for f in functions:
                total |= self.project.effects.of(f)
            return self._by(total, given)
        return _unknown(given)

    def _hooked(self, cls: ast.ClassDef | None) -> bool:
        """Whether this file, or a method of ``cls`` or of a class above or below it, hangs hooks on modules."""
        if self._hooking:
            return True
        if cls not in self._hooks:
            family, _ = (
                self.project.family(f"{self.module}.{self.syntax.qualname(cls) or cls.name}") if cls else ((), ())
            )
            methods = (f"{name}.{m}" for name in family if (c := self.project.known_class(name)) for m in c.methods)
            summaries = (s for m in methods if (s := self.project.function(m)) is not None)
            self._hooks[cls] = any(not _last_words(s.mentions).isdisjoint(tables.HOOKING) for s in summaries)
        return self._hooks[cls]

    @cached_property
    def _hooking(self) -> bool:
        return any(n.attr in tables.HOOKING for n in self.syntax.by_type[ast.Attribute])

    def _stores(self, func: ast.expr) -> list[Store]:
        own = self.inference.instance_attribute(func)
        return self.inference.class_facts(own[0]).stores.get(own[1], []) if own is not None else []

    def _flagged(self, func: ast.expr) -> bool:
        """Whether the module may have been made to work in place."""
        stores = self._stores(func)
        return not stores or any(
            not isinstance(s.value, ast.Call)
            or any(k.arg in ("inplace", None) for k in s.value.keywords)
            or any(not isinstance(a, ast.Constant) or a.value is True for a in s.value.args[-1:])
            for s in stores
        )

    def _renorms(self, func: ast.expr) -> bool:
        return any(
            isinstance(s.value, ast.Call)
            and (len(s.value.args) > 3 or any(k.arg == "max_norm" for k in s.value.keywords))
            for s in self._stores(func)
        )


def _last_words(mentions: Iterable[str]) -> set[str]:
    return {m.rpartition(".")[2] for m in mentions}


def _unknown(given: tuple[ast.expr, ...]) -> Called:
    """A call of code that is not read."""
    return Called(writes=given, resizes=True, sets=frozenset({"*"}), runs=True, gives=given, keeps=given, world=True)


def _writing(given: tuple[ast.expr, ...]) -> Called:
    """A call that may write into all that it is given."""
    return Called(writes=given, resizes=True, gives=given, world=True)


def spelled(call: ast.Call) -> str:
    """What is called, for a message."""
    return dotted(call.func) or ast.unparse(call.func)
