"""What the function is called that reads outside of the graph, and where a person would put it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.written import is_stored
from patcher.facts.zones.clusters import Cluster, Clusters

#: Where a word of a class's name begins: ``SmolVLAPolicy`` is of three.
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: What needs the instance, or the class, though neither is named.
_IMPLICIT = frozenset({"super", "__class__"})


@dataclass(frozen=True)
class Place:
    """Where the new function goes, as ``name``.

    ``me``: what it calls the instance, "" where it gets none. ``owner``: what stands before the name in a call of it.
    ``below``: the class that it is put below, None for a place beside the function that it is taken from.
    """

    name: str
    me: str = ""
    owner: str = ""
    below: ast.ClassDef | None = None

    @property
    def static(self) -> bool:
        """Whether it is a static method."""
        return bool(self.owner) and not self.me


class Naming(Analysis):
    """Answers for the functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.clusters = facts.ask(Clusters)

    def place(self, function: ast.FunctionDef, cluster: Cluster, disable: str) -> Place:
        """Where what ``cluster`` takes out of ``function`` goes: a method only where it needs its instance.

        Else a class with small methods of its own gets a static one more, and below any other comes a function.
        """
        cls, me = self.syntax.parents[function], self_name(function)
        wish = self._wish(function, cluster)
        if not isinstance(cls, ast.ClassDef) or me is None:
            return Place(self.facts.writing.fresh_name("_".join(wish), function))
        zone = [n for s in self._zone(function, cluster) for n in ast.walk(s)]
        used = cluster.flag or any(isinstance(n, ast.Name) and n.id in {me, *_IMPLICIT} for n in zone)
        if used or self.facts.writing.why_not_builtin("staticmethod"):
            return Place(self._method(wish, function, cls), me, f"{me}.")
        apart = self._can_be_outside(function, cls, cluster, zone, disable)
        if apart and (not _has_small_methods(cls, function) or self.clusters.may_share(function)):
            return Place(self.facts.writing.fresh_name("_".join(wish), cls), below=cls)
        return Place(self._method(wish, function, cls), owner=f"{me}.")

    def inner(self, function: ast.FunctionDef) -> str:
        """The name of the plain half of a function that a flag parts."""
        cls, wish = self.syntax.parents[function], function.name.strip("_")
        if isinstance(cls, ast.ClassDef):
            return self._method(("", wish), function, cls)
        return self.facts.writing.fresh_name(f"_{wish}", function)

    def _method(self, wish: tuple[str, str], function: ast.FunctionDef, cls: ast.ClassDef) -> str:
        """The name of a method: with that of its class, where classes above or below may come to have the short one."""
        verb, word = wish
        if self.clusters.may_share(function):
            word = f"{_CAPITALS.sub('_', cls.name).strip('_').lower()}_{word}"
        return self.facts.writing.fresh_attribute(f"{verb}_{word}", cls)

    def _can_be_outside(
        self, function: ast.FunctionDef, cls: ast.ClassDef, cluster: Cluster, zone: list[ast.AST], disable: str
    ) -> bool:
        """Whether all names mean the same below ``cls``, and nothing can run its methods before."""
        if isinstance(self.syntax.parents[cls], ast.ClassDef) or cls.decorator_list or cls.keywords:
            return False
        if self.facts.writing.spelled("torch.compiler.disable", cls) != disable:
            return False
        named = {str(getattr(n, "id", getattr(n, "attr", getattr(n, "arg", None)))) for n in zone}
        if any(name.startswith("__") and not name.endswith("__") for name in named):  # which a class spells otherwise
            return False
        noted = [h.annotation for h in cluster.handed if h.annotation is not None]
        noted += [function.returns] if function.returns is not None else []
        bound = {s.name for s in cls.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        bound |= {n.id for s in cls.body if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in _stored(s)}
        return bound.isdisjoint(n.id for e in noted for n in ast.walk(e) if isinstance(n, ast.Name))

    # --- words ------------------------------------------------------------------------------------------------------

    def _wish(self, function: ast.FunctionDef, cluster: Cluster) -> tuple[str, str]:
        """What it does, and to what: it fills the one thing that it writes to and gives back, or it reads."""
        zone = self._zone(function, cluster)
        if (filled := _filled(zone, cluster)) is not None and not cluster.flag:
            return "_fill", filled.strip("_").lower() or "data"
        read = next((r for r in cluster.reads if r.certain), cluster.reads[0])
        body = function.body[function.body.index(zone[0]) :]
        word = self._named(read.node, {n for s in body for n in self.syntax.subtree(s)})
        return "_read", word.strip("_").lower() or "data"

    def _named(self, e: ast.expr, inside: set[ast.AST]) -> str:
        """The name that ``e`` begins with; of what is made ``inside``, that of what it is made of."""
        for n in sorted(self.syntax.subtree(e), key=_position):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
                return n.attr
            if not isinstance(n, ast.Name) or n.id in {"self", *self.syntax.imports} or self.syntax.is_builtin(n):
                continue
            defined = self.inference.definitions(n)
            made = next((d.value for d in defined if d.node in inside and d.value in inside), None)
            return (self._named(made, inside - {made}) if made is not None else "") or n.id
        return ""

    def _zone(self, function: ast.FunctionDef, cluster: Cluster) -> list[ast.stmt]:
        at = 0 if cluster.first is None else function.body.index(cluster.first)
        end = len(function.body) if cluster.last is None else function.body.index(cluster.last) + 1
        return function.body[at:end]


def _filled(zone: list[ast.stmt], cluster: Cluster) -> str | None:
    """The one name whose elements ``zone`` writes, where nothing else comes out of it."""
    written = {_root(n) for s in zone for n in ast.walk(s) if isinstance(n, ast.Subscript) and _is_written(n)}
    name = written.pop() if len(written) == 1 else None
    if name is None or cluster.last is not None:
        return name if set(cluster.left) <= {name} else None
    returned = [n.value for s in zone for n in ast.walk(s) if isinstance(n, ast.Return)]
    return name if all(isinstance(v, ast.Name) and v.id == name for v in returned) else None


def _is_written(n: ast.Subscript) -> bool:
    return not isinstance(n.ctx, ast.Load)


def _root(e: ast.expr) -> str | None:
    while isinstance(e, ast.Subscript):
        e = e.value
    return e.id if isinstance(e, ast.Name) else None


def _has_small_methods(cls: ast.ClassDef, function: ast.FunctionDef) -> bool:
    """Whether ``cls`` has small methods of its own beside ``function``: private ones, or static ones."""
    methods = [s for s in cls.body if isinstance(s, ast.FunctionDef) and s is not function]
    private = any(m.name.startswith("_") and not m.name.startswith("__") for m in methods)
    return private or any(isinstance(d, ast.Name) and d.id == "staticmethod" for m in methods for d in m.decorator_list)


def _stored(s: ast.stmt) -> Iterable[ast.Name]:
    return filter(is_stored, ast.walk(s))


def _position(node: ast.AST) -> tuple[int, int, int]:
    at = (node.lineno, node.col_offset) if isinstance(node, ast.expr) else (0, 0)
    return (*at, int(isinstance(node, ast.Name)))
