"""Methods that code takes from a class without an instance of it, and may run for objects of another class."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from patcher.facts.syntax.tree import Syntax, last_name

Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
#: What of a method gives the function that it is made of, or makes a method of another object of it.
_FUNCTIONS = frozenset({"__func__", "__get__"})
#: Functions that read one attribute of a class by its name, or all of them.
_READERS = frozenset({"getattr", "vars", "getmembers", "getattr_static"})
ANY = "*"


class Taken:
    """One look at a module. ``found``: ``Class.method``, with `ANY` for what is not known of it."""

    def __init__(self, syntax: Syntax, imports: Mapping[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.owner = owner
        self._classes = {c.name: c.name for c in syntax.by_type[ast.ClassDef] if isinstance(c, ast.ClassDef)}
        self._classes |= {name: what.rpartition(".")[2] for name, what in imports.items() if name[:1].isupper()}
        for n in syntax.by_type[ast.Assign]:  # another name for one of them
            if isinstance(n, ast.Assign) and (cls := self._class(n.value)):
                self._classes |= {t.id: cls for t in n.targets if isinstance(t, ast.Name)}
        self.found = frozenset((*self._attributes(), *self._by_name()))

    def _class(self, e: ast.expr) -> str:
        """The last name of the class that ``e`` is, as far as that is written there; "" for anything else."""
        match e:
            case ast.Name(id=name):
                return self._classes.get(name, "")
            case ast.Attribute(attr="__class__") | ast.Call(func=ast.Name(id="type"), args=[_]):
                return ANY
            case ast.Attribute(attr=attr) if attr[:1].isupper():
                return attr
        return ""

    def _attributes(self) -> Iterator[str]:
        for n in self.syntax.by_type[ast.Attribute]:
            if not isinstance(n, ast.Attribute) or not isinstance(n.ctx, ast.Load):
                continue
            cls = self._class(n.value)
            if cls and n.attr != "__dict__":
                yield f"{cls}.{n.attr}"
            elif cls and cls != ANY:
                yield f"{cls}.{ANY}"
            elif self._is_unbound(n):
                yield f"{ANY}.{n.attr}"

    def _is_unbound(self, method: ast.Attribute) -> bool:
        """Whether ``method``, of an object or a class, is used as the function that it is made of."""
        match self.syntax.parents[method]:
            case ast.Attribute(attr=attr):
                return attr in _FUNCTIONS
            case ast.Call(func=func, args=[first, *_]) as call:
                made = first is method and last_name(func) == "MethodType"
                return made or (func is method and self._is_given_self(call, method, first))
        return False

    def _is_given_self(self, call: ast.Call, called: ast.Attribute, first: ast.expr) -> bool:
        """Whether ``call`` gives a method of something else the instance of the method in which it stands."""
        function, me = self.owner(call)
        supers = isinstance(called.value, ast.Call) and last_name(called.value.func) == "super"
        method = function is not None and isinstance(self.syntax.parents.get(function), ast.ClassDef)
        return method and not supers and isinstance(first, ast.Name) and first.id == me

    def _by_name(self) -> Iterator[str]:
        for call in self.syntax.by_type[ast.Call]:
            if not isinstance(call, ast.Call) or last_name(call.func) not in _READERS or not call.args:
                continue
            cls, key = self._class(call.args[0]), call.args[1] if len(call.args) > 1 else None
            known = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ANY
            if cls and (cls, known) != (ANY, ANY):
                yield f"{cls}.{known}"


def is_taken(method: str, classes: Iterable[str], found: Iterable[frozenset[str]]) -> bool:
    """Whether modules with these `Taken.found` take ``method`` from one of ``classes``, by their last names."""
    ways = {f"{cls}.{name}" for cls in (ANY, *classes) for name in (method, ANY)}
    return any(not ways.isdisjoint(f) for f in found)
