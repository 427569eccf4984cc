"""Whether what is kept in a place is still there, and still whole, with the next call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import INITIALISERS, pairs
from patcher.facts.syntax.tree import FunctionNode, last_name, own_nodes
from rules.fc305_growing_cache.places import EARLIER, KEPT, KEYS, VALUES, Place, Places, methods_of


class Lasting(Analysis):
    """Looks at what the functions around a place do to it."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.places = facts.ask(Places)

    def lasts(self, place: Place, function: FunctionNode) -> bool:
        """Whether what was kept is still there, and still whole, with the next call.

        Not so when it starts anew or is cut in compiled code. A ``reset`` that callers decide about is fine.
        """
        if isinstance(place.root, ast.arg):
            known = place.words & (KEPT | EARLIER) or (place.words & KEYS or place.words & VALUES)
            return bool(place.steps) and bool(known) and not self._is_cut(place, [function])
        methods = list(methods_of(place.root))
        if any(self._starts_anew(f, place, methods) for f in methods if f is function or self._calls(f, function)):
            return False
        return not self._is_cut(place, methods)

    def _calls(self, f: FunctionNode, function: FunctionNode) -> bool:
        """Whether ``f``, a method of the same class, is on the way from compiled code to ``function``."""
        mentioned = (self.inference.instance_attribute(n) for n in own_nodes(f))
        return f.name == "forward" or any(own is not None and own[1] == function.name for own in mentioned)

    def _starts_anew(self, f: FunctionNode, place: Place, methods: list[FunctionNode]) -> bool:
        """Whether each run of ``f`` fills ``place`` without a look at what is in it."""
        if f.name in INITIALISERS:
            return False
        for s in f.body:
            if self._fills(s, place):
                return True
            match s:
                case ast.Expr(value=ast.Call(func=ast.Attribute() as func)):
                    own = self.inference.instance_attribute(func)
                    called = [m for m in methods if own is not None and m.name == own[1] and m is not f]
                    if any(self._fills(inner, place) for m in called for inner in m.body):
                        return True
        return False

    def _fills(self, s: ast.stmt, place: Place) -> bool:
        """Whether ``s`` itself puts something into ``place``, or into what holds it, that is not made of it."""
        match s:
            case ast.Assign(targets=targets, value=value):
                stores = [pair for t in targets for pair in pairs(t, value)]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                stores = [(target, value)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr="clear"))):
                return any(self._holds(p, place) for p in self.places.of(holder))
            case _:
                return False
        return any(
            not isinstance(t, ast.Name) and v is not None and self._holders(t, place) and not self._comes_from(v, place)
            for t, v in stores
        )

    def _comes_from(self, e: ast.expr, place: Place, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether what is in ``place`` may be a part of ``e``."""
        for n in ast.walk(e):
            if any(p.anywhere == place.anywhere for p in self._whole(n)):
                return True
            if isinstance(n, ast.Name):
                for d in self.inference.definitions(n) - seen:
                    if d.value is not None and self._comes_from(d.value, place, seen | {d}):
                        return True
        return False

    def _whole(self, n: ast.AST) -> frozenset[Place]:
        return self.places.of(n) if isinstance(n, (ast.Attribute, ast.Subscript, ast.Name)) else frozenset()

    def _holds(self, p: Place, place: Place) -> bool:
        return p.anywhere == place.anywhere[: len(p.anywhere)]

    # --- longer only when that is asked for -------------------------------------------------------------------------

    def grows_on_demand(self, node: ast.AST, place: Place, function: FunctionNode) -> bool:
        """Whether ``node`` runs only while ``place`` is shorter than an argument says: a table, not a history.

        The test may stand around ``node`` or around every call of ``function`` in its class; or the function returns
        early.
        """
        if self._is_short_of(node, place):
            return True
        if not isinstance(place.root, ast.ClassDef):
            return False
        methods = [n for f in methods_of(place.root) if f is not function for n in own_nodes(f)]
        own = [(n, self.inference.instance_attribute(n.func)) for n in methods if isinstance(n, ast.Call)]
        calls = [n for n, called in own if called == (place.root, function.name)]
        return bool(calls) and all(self._is_short_of(n, place) for n in calls)

    def _is_short_of(self, node: ast.AST, place: Place) -> bool:
        """Whether a test in its function keeps ``node`` from running once ``place`` is long enough."""
        function, child = self.syntax.function_of(node), node
        for parent in self.syntax.ancestors(node):
            if isinstance(child, ast.stmt):
                block = self.syntax.block_of(child)
                for s in block[: block.index(child)]:
                    leaves = isinstance(s, ast.If) and not s.orelse and isinstance(s.body[-1], (ast.Return, ast.Raise))
                    if leaves and isinstance(s, ast.If) and self._compares(s.test, place, short=False):
                        return True
                if isinstance(parent, ast.If) and self._compares(parent.test, place, short=child in parent.body):
                    return True
            if parent is function:
                return False
            child = parent
        return False

    def _compares(self, test: ast.expr, place: Place, short: bool) -> bool:
        """Whether ``test`` asks if the length of ``place`` is below (``short``) or above what an argument says."""
        match test:
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
                below, above = left, right
            case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
                below, above = right, left
            case _:
                return False
        length, demand = (below, above) if short else (above, below)
        return self._is_length(length, place) and self._is_asked_for(demand)

    def _is_length(self, e: ast.expr | None, place: Place, named: bool = False) -> bool:
        """Whether ``e`` is ``t.size(i)``, ``t.shape[i]`` or ``len(t)`` of what is in ``place``, or a name for that."""
        match e:
            case ast.Name() if not named:
                bound = [d.part for d in self.inference.definitions(e) if d.how == "assign"]
                return len(bound) == 1 and not bound[0][1] and self._is_length(bound[0][0], place, named=True)
            case (
                ast.Call(func=ast.Attribute(value=of, attr="size"), args=[_])
                | ast.Call(func=ast.Name(id="len"), args=[of])
                | ast.Subscript(value=ast.Attribute(value=of, attr="shape"))
            ):
                return place in self.places.of(of)
        return False

    def _is_asked_for(self, e: ast.expr) -> bool:
        """Whether ``e`` is made of arguments of the call, and of nothing that the instance holds."""
        found = list(self._origins(e, frozenset()))
        return bool(found) and all(d.how == "parameter" and list(self.places.of_definition(d)) for d in found)

    def _origins(self, e: ast.expr, seen: frozenset[Definition]) -> Iterator[Definition]:
        """What the names in ``e`` were bound from in the first place."""
        for d in {d for n in ast.walk(e) if isinstance(n, ast.Name) for d in self.inference.definitions(n)} - seen:
            if d.how == "parameter" or d.value is None:
                yield d
            else:
                yield from self._origins(d.value, seen | {d})

    # --- cut --------------------------------------------------------------------------------------------------------

    def _is_cut(self, place: Place, functions: Iterable[FunctionNode]) -> bool:
        """Whether the front of ``place`` is dropped somewhere, or a list loses entries."""
        for f in functions:
            for n in own_nodes(f):
                match n:
                    case ast.Assign(targets=targets, value=value):
                        stores = [t for t in targets if any(p.anywhere == place.anywhere for p in self._whole(t))]
                        if stores and any(_drops_front(a) for a in self.places.alternatives(value)):
                            return True
                        if any("deque" in ast.unparse(value) for t in targets if self._holders(t, place)):
                            return True
                    case ast.Delete(targets=targets):
                        if any(isinstance(t, ast.Subscript) and self._holders(t.value, place) for t in targets):
                            return True
                    case ast.Call(func=ast.Attribute(value=holder, attr="pop" | "popleft")):
                        if any(p.anywhere == place.anywhere for p in self.places.of(holder)):
                            return True
        return False

    def _holders(self, e: ast.expr, place: Place) -> bool:
        return any(self._holds(p, place) for p in self._whole(e))


def _drops_front(e: ast.expr) -> bool:
    """Whether ``e`` is a tensor or list without its first entries."""
    match e:
        case ast.Subscript(slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            lowers = [p.lower for p in parts if isinstance(p, ast.Slice) and p.lower is not None]
            return any(not (isinstance(x, ast.Constant) and x.value == 0) for x in lowers)
        case ast.Call(func=func):
            return last_name(func) in ("narrow", "roll", "deque")
    return False
