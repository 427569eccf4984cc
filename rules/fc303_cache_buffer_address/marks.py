"""Which buffers of a cache are marked already, by ``torch._dynamo.mark_static_address`` in any spelling."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins, parts_of
from patcher.facts.syntax.tree import last_name

_MARK = "mark_static_address"
#: A buffer, the method that stores it and the value.
Given = tuple[str, ast.FunctionDef, ast.expr | None]


class Marks(Analysis):
    """``elsewhere``: buffers that code outside of the class marks; what it marks, it may mark after each allocation."""

    def __init__(self, origins: Origins, buffers: frozenset[str]) -> None:
        super().__init__(origins.facts)
        self.buffers = buffers
        self.origins = origins
        self.names = self._spellings()
        self.inside: dict[ast.FunctionDef, list[ast.expr]] = {}
        self.elsewhere: set[str] = set()
        for n in self.syntax.by_type[ast.Call]:
            marked = self._marked(n)
            method = self.syntax.method_of(n)
            if marked and isinstance(method, ast.FunctionDef) and self.syntax.parents[method] is origins.cls:
                self.inside.setdefault(method, []).extend(marked)
            elif marked:
                around = self.syntax.function_of(n) or self.syntax.statement_of(n)
                self.elsewhere |= {a.attr for a in ast.walk(around) if isinstance(a, ast.Attribute)} & buffers
        for _, _, f in self.project.mentions(_MARK):
            self.elsewhere |= {m[1:] for m in f.mentions if m.startswith(".")} & buffers

    def at(self, method: ast.FunctionDef, buffer: str, stores: Sequence[Given]) -> bool:
        """Whether ``method``, one that it calls, or each method that calls it, marks ``buffer``."""
        if buffer in self.elsewhere or self._marks(method, buffer, stores, frozenset()):
            return True
        callers = self.origins.callers(method)
        return bool(callers) and all(self._marks(f, buffer, stores, frozenset()) for f in callers)

    def _marks(
        self, method: ast.FunctionDef, buffer: str, stores: Sequence[Given], seen: frozenset[ast.FunctionDef]
    ) -> bool:
        for e in self.inside.get(method, ()):
            asked = any(isinstance(n, ast.Call) and last_name(n.func) == "getattr" for n in ast.walk(e))
            if asked or buffer in self.origins.of(e) or self._stored(e, method, buffer, stores):
                return True
        below = {f for _, f in self.origins.calls[method]} - seen - {method}
        return any(self._marks(f, buffer, stores, seen | {method}) for f in below)

    def _stored(self, e: ast.expr, method: ast.FunctionDef, buffer: str, stores: Sequence[Given]) -> bool:
        """Whether the local name ``e`` is also what ``method`` stores in ``buffer``, or an element of that."""
        found = self._sources(e)
        return any(b == buffer and f is method and v is not None and self._sources(v) & found for b, f, v in stores)

    def _sources(self, e: ast.AST, depth: int = 0) -> set[object]:
        """The definitions of the local names that ``e`` is, or is an element of."""
        match e:
            case ast.Name() if depth < 6:
                own = [d for d in self.origins.inference.definitions(e) if d.how in ("assign", "iteration")]
                return {*own, *(s for d in own for part in parts_of(d) for s in self._sources(part, depth + 1))}
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(func=ast.Name(id="zip" | "list"), args=parts):
                return {s for part in parts for s in self._sources(part, depth + 1)}
            case ast.Subscript(value=value) | ast.Starred(value=value):
                return self._sources(value, depth + 1)
        return set()

    def _marked(self, call: ast.Call) -> list[ast.expr]:
        """What ``call`` marks: its arguments, also where the function is handed on (``map(mark, self.keys)``)."""
        handed = [a for a in call.args if last_name(a) in self.names]
        if last_name(call.func) not in self.names and not handed:
            return []
        return [a for a in (*call.args, *(k.value for k in call.keywords)) if a not in handed]

    def _spellings(self) -> set[str]:
        """The names that the function has here: of imports, of assignments, of functions that pass their argument."""
        found = {_MARK} | {name for name, what, _ in self.syntax.all_imports if what.rpartition(".")[2] == _MARK}
        for n in self.syntax.by_type[ast.Assign]:
            match n:
                case ast.Assign(targets=targets, value=ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_])):
                    found |= {last_name(t) for t in targets if isinstance(name, ast.Constant) and name.value == _MARK}
                case ast.Assign(targets=targets, value=value) if last_name(value) == _MARK:
                    found |= {last_name(t) for t in targets}
        for f in self.syntax.by_type[ast.FunctionDef]:
            parameters = {a.arg for a in (*f.args.posonlyargs, *f.args.args)} - {"self", "cls"}
            calls = [n for n in self.syntax.subtree(f) if isinstance(n, ast.Call) and last_name(n.func) in found]
            if any(
                isinstance(n, ast.Name) and n.id in parameters for c in calls for a in c.args[:1] for n in ast.walk(a)
            ):
                found.add(f.name)
        return found - {""}
