"""Who sets attributes, writes into what they hold, and where that goes: what one file tells, for the index over all.

A write is traced back to the places, as `Places` has them, that the object may come from.
"""

from __future__ import annotations

import ast
import builtins
import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from patcher.facts.project.does import element_of
from patcher.facts.project.places import HOLDERS, Owner, Places, Source, pattern
from patcher.facts.syntax.classes import INITIALISERS, REGISTRATIONS, pairs
from patcher.facts.syntax.tree import Syntax, dotted, last_name
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables.wording import suggests_change, suggests_configuration

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BY_NAME = frozenset("setattr delattr __setattr__ __delattr__".split())
#: How ``unittest.mock`` puts something in the place of an attribute for a while.
_PATCHING = re.compile(r"(^|\.)patch(\.object|\.multiple)?$")
_CHANGING = tables.CONTAINER_WRITES | tables.ARRAY_WRITES


class How(enum.Enum):
    """What happens: it is ``SET`` anew, ``WRITTEN`` into, something ``WITHIN`` it is changed, or it ``GOES`` on."""

    SET = "sets"
    WRITTEN = "writes into"
    WITHIN = "changes something in"
    GOES = "hands on"


@dataclass(frozen=True)
class Touch:
    """What happens to ``place`` in ``inside``, a function, at ``line``.

    ``owners``: dotted classes of the object whose attribute it is; none when that is not known. ``early``: an
    initialiser does it to its own instance. ``listed``: the summary of its class has it. ``to``: where it goes: a
    place, of one of ``to_owners``, or what a dotted class is made with, as "class[" ("<": ``inside`` reads the global).
    """

    place: str
    how: How
    owners: tuple[str, ...] = ()
    inside: str = ""
    line: int = 0
    early: bool = False
    listed: bool = False
    to: str = ""
    to_owners: tuple[str, ...] = ()


class Touches(Places):
    """One look at a module: ``found``."""

    def __init__(self, syntax: Syntax, module: str, imports: dict[str, str], owner: Owner) -> None:
        super().__init__(syntax, module, imports, owner)
        self.found: set[Touch] = set()
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
            self._add(n, [(pattern(key).rpartition(".")[2], (), 0) for key in keys], How.SET)
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
        names = [k.arg or "*" for k in n.keywords] if last == "multiple" else [pattern(a) for a in n.args[1:2]]
        if last == "patch":  # of a path, with the name last
            names = [pattern(a).rpartition(".")[2] for a in n.args[:1] if "." in pattern(a)]
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
        return found or {pattern(key)}

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
        elif last[:1].isupper() and last not in HOLDERS:
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
