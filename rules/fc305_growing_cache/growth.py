"""What grows: joins of the whole of a place whose whole result goes back, and lists that are joined."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import CREATES
from patcher.facts.syntax.classes import INITIALISERS, pairs
from patcher.facts.syntax.tree import FunctionNode, last_name, own_nodes
from patcher.facts.tables.wording import words
from rules.fc305_growing_cache.depth import Depth, dimension, keyword
from rules.fc305_growing_cache.lasting import Lasting
from rules.fc305_growing_cache.places import EARLIER, KEPT, KEYS, VALUES, Place, Places, cuts, methods_of

_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
#: Words for what is handed to the next call.
_NEXT = frozenset("present presents next new updated state states".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Growth:
    """One place that grows. ``node``: the call that makes it longer, by ``fresh``, along ``dim``. ``old``: what it was.

    ``text``: the place as the source has it. ``how``: "stored" (back where it was), "returned" or "listed".
    """

    node: ast.Call
    text: str
    fresh: ast.expr
    dim: int | None
    how: str
    old: ast.expr


class Growing(Analysis):
    """Finds what grows in the functions of one module. ``reached``: whether a function runs in compiled code."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.places = facts.ask(Places)
        self.lasting = facts.ask(Lasting)
        self.depth = facts.ask(Depth)
        self._joined_lists: dict[ast.ClassDef, dict[tuple[object, ...], ast.Call]] = {}

    def of(self, function: FunctionNode) -> tuple[Growth, ...]:
        """What grows in ``function``, in the order of the lines; empty when it is not known to run in compiled code."""
        found = sorted(self._found(function), key=lambda g: (g.node.lineno, g.node.col_offset))
        return tuple(found) if found and self._is_compiled(function, found) else ()

    def _found(self, function: FunctionNode) -> Iterator[Growth]:
        if function.name in INITIALISERS or function.name == "__new__":
            return
        calls = [c for c in self.syntax.own(function, ast.Call) if isinstance(c, ast.Call)]
        if any(self._parts(c) for c in calls):
            nodes = list(own_nodes(function))
            found = (*self._stored(function, nodes), *self._returned(function, nodes))
            yield from {growth.node: growth for growth in reversed(found)}.values()
        for call in calls:
            yield from self._listed(call, function)

    # --- what a join is made of, and where the result goes ----------------------------------------------------------

    def _parts(self, call: ast.Call) -> list[ast.expr]:
        """The tensors that ``call`` joins, when it is a join of at least two that are written out."""
        if self.syntax.qualified(call.func) not in _JOINS:
            return []
        given = call.args[0] if call.args else keyword(call, "tensors")
        if isinstance(given, ast.Name):
            given = next(self.places.alternatives(given), None)
        return list(given.elts) if isinstance(given, (ast.Tuple, ast.List)) and len(given.elts) > 1 else []

    def _grown(self, call: ast.Call) -> Iterator[tuple[Place, ast.expr, ast.expr]]:
        """For each place that ``call`` adds to: the place, the part that is the whole of it, and what is added."""
        parts = self._parts(call)
        places = [self.places.of(p) for p in parts]
        for part, found in zip(parts, places, strict=True):
            added = [p for p, other in zip(parts, places, strict=True) if not other & found]
            if len(added) == 1 and not isinstance(added[0], ast.Starred) and not self._is_made(added[0]):
                for place in found:
                    yield place, part, added[0]

    def _is_made(self, e: ast.expr) -> bool:
        """Whether ``e`` is a new tensor of zeros or the like: that is room, or padding, not another entry."""
        return any(isinstance(a, ast.Call) and last_name(a.func) in CREATES for a in self.places.alternatives(e))

    def _stored(self, function: FunctionNode, nodes: list[ast.AST]) -> Iterator[Growth]:
        for n in nodes:
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None:
                for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                    for t, value in pairs(target, n.value):
                        if isinstance(t, (ast.Attribute, ast.Subscript)) and value is not None:
                            yield from self._store(t, value, function)

    def _store(self, target: ast.expr, value: ast.expr, function: FunctionNode) -> Iterator[Growth]:
        for place in self.places.of(target):
            for steps, part in self.places.components(value):
                kept = Place(place.root, (*place.steps, *steps))
                grown = [(call, *g) for call in self._joins(part) for g in self._grown(call)]
                for call, old, element, fresh in grown:
                    lasts = old == kept and self.lasting.lasts(kept, function)
                    if not lasts or not self.depth.is_deep(call, old, element, fresh):
                        continue
                    if not self.lasting.grows_on_demand(call, old, function):
                        yield Growth(
                            call, ast.unparse(target) + "".join(steps), fresh, dimension(call), "stored", element
                        )

    def _returned(self, function: FunctionNode, nodes: list[ast.AST]) -> Iterator[Growth]:
        """Joins to what a parameter is, or a sequence or dict in it has, that leave beside the other results.

        An attribute of an object is not replaced by what its reader returns.
        """
        found: list[tuple[ast.Call, Place, ast.expr, ast.expr]] = []
        named: dict[Place, frozenset[str]] = {}
        for n in nodes:
            if isinstance(n, ast.Return) and n.value is not None:
                for steps, part in self.places.components(n.value, function):
                    if steps:
                        said = frozenset(w for text in (ast.unparse(part), *steps) for w in words(text))
                        grown_here = [
                            (call, *grown)
                            for call in self._joins(part)
                            for grown in self._grown(call)
                            if isinstance(grown[0].root, ast.arg)
                            and all(step.startswith("[") for step in grown[0].steps)
                            and self.depth.is_deep(call, *grown)
                        ]
                        named |= {g[1]: said | named.get(g[1], frozenset()) for g in grown_here}
                        found += grown_here
        places = {place for _, place, _, _ in found}
        for call, place, element, fresh in found:
            if self._is_carried(place, places, function, named[place]):
                yield Growth(call, ast.unparse(element), fresh, dimension(call), "returned", element)

    def _is_carried(self, place: Place, places: set[Place], function: FunctionNode, returned: frozenset[str]) -> bool:
        """Whether the names say that what is ``returned`` comes back in ``place`` with the next call.

        A past that is only put in front of the input, and leaves as what is worked on, is kept by nobody.
        """
        assert isinstance(place.root, ast.arg)
        named = frozenset(words(place.root.arg))
        if named & KEPT or not named & EARLIER:
            return bool(named & KEPT)
        twins = [p for p in places if p.root is place.root]
        all_words = frozenset(w for p in places for w in p.words)
        asked = any(
            isinstance(n, ast.Compare)
            and isinstance(n.ops[0], (ast.Is, ast.IsNot))
            and getattr(n.left, "id", "") == place.root.arg
            for n in own_nodes(function)
        )
        kept = bool(place.steps or returned & (named | EARLIER | KEPT | _NEXT))
        return len(twins) > 1 or (asked and kept) or bool(all_words & KEYS and all_words & VALUES)

    def _listed(self, call: ast.Call, function: FunctionNode) -> Iterator[Growth]:
        """``self.k.append(k)`` for a list that the class joins or stacks."""
        match call:
            case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[fresh]):
                for place in self.places.of(target):
                    join = self._lists(place.root).get(place.anywhere) if isinstance(place.root, ast.ClassDef) else None
                    lasts = join is not None and self.lasting.lasts(place, function)
                    if join is not None and lasts and self.depth.is_deep(join, place, target, fresh):
                        yield Growth(call, ast.unparse(target), fresh, dimension(join), "listed", target)

    def _lists(self, cls: ast.ClassDef) -> dict[tuple[object, ...], ast.Call]:
        """The places of ``cls`` that are joined as lists, with the call that does it."""
        if cls not in self._joined_lists:
            found: dict[tuple[object, ...], ast.Call] = {}
            for call in (n for f in methods_of(cls) for n in own_nodes(f) if isinstance(n, ast.Call)):
                if self.syntax.qualified(call.func) in _JOINS | {"torch.stack"} and call.args:
                    given = call.args[0]
                    if isinstance(given, ast.Call) and last_name(given.func) in ("list", "tuple") and given.args:
                        given = given.args[0]
                    found.update((place.anywhere, call) for place in self.places.of(given))
            self._joined_lists[cls] = found
        return self._joined_lists[cls]

    # --- what an expression may be ----------------------------------------------------------------------------------

    def _joins(self, e: ast.expr) -> list[ast.Call]:
        """The joins that ``e`` may be the result of; none when it may also be a cut one."""
        found = list(self.places.alternatives(e))
        if any(isinstance(a, ast.Subscript) and cuts(a.slice) for a in found):
            return []
        return [a for a in found if isinstance(a, ast.Call) and self._parts(a)]

    # --- does it last, is it deep, does it run compiled -------------------------------------------------------------

    def _is_compiled(self, function: FunctionNode, found: list[Growth]) -> bool:
        """Whether ``function`` runs in compiled code, as far as can be told.

        A plain object mostly comes to compiled code as an argument. Its method counts when compiled code calls one of
        that name; and when both keys and values grow in it, for then it can be nothing but a model's cache.
        """
        if self.facts.reached(function):
            return True
        cls = self.syntax.class_of(function)
        name = self.syntax.qualname(function)
        if cls is None or name is None or self.syntax.method_of(function) is not function:
            return False
        if self.project.is_module_class(f"{self.module}.{name}".rpartition(".")[0]):
            return False
        grown = frozenset(w for g in found for w in words(g.text))
        return bool(grown & KEYS and grown & VALUES) or self.project.called_by_name(function.name, self.module)
