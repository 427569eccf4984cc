"""Dictionaries that outlive a call and are asked for a key with a size in it: what was worked out for that size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import same_expression
from patcher.facts.tables import torch_api as api
from patcher.facts.values.sizes import Sizes

_DICTS = ("dict", "OrderedDict", "defaultdict", "WeakValueDictionary")
_DEEPEST = 4  # names that a key is followed through


@dataclass(frozen=True)
class Lookup:
    """``key in held``, ``key not in held`` or ``held.get(key)``, which is ``node``.

    ``stores``: the assignments to ``held[key]`` in its function; ``reads``: what reads ``held[key]`` there. ``others``:
    where else the dictionary is mentioned, but to be emptied. ``text``: whether the key is written out as a string.
    """

    node: ast.Compare | ast.Call
    held: ast.expr
    key: ast.expr
    stores: tuple[ast.stmt, ...]
    reads: tuple[ast.Subscript, ...]
    others: tuple[ast.expr, ...]
    text: bool


class KeyedCaches(Analysis):
    """The lookups of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._sizes = facts.ask(Sizes)

    def of(self, node: ast.AST) -> Lookup | None:
        """``node`` as a lookup in what outlives the call, by a size, that its function also fills."""
        match node:
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[held]):
                pass
            case ast.Call(func=ast.Attribute(value=held, attr="get"), args=[key], keywords=[]):
                pass
            case ast.Call(
                func=ast.Attribute(value=held, attr="get"), args=[key, ast.Constant(value=None)], keywords=[]
            ):
                pass
            case _:
                return None
        assert isinstance(node, (ast.Compare, ast.Call))
        function = self.syntax.function_of(node)
        if function is None or not self._outlives(held):
            return None
        every = (s for s in self.syntax.own(function, ast.Subscript) if isinstance(s, ast.Subscript))
        items = [s for s in every if self._is_item(s, held, key)]
        statements = [self.syntax.statement_of(s) for s in items if isinstance(s.ctx, ast.Store)]
        if not statements:
            return None
        parts = list(self._parts(key))
        if not any(self._has_size(part) for part in parts):
            return None
        reads = tuple(s for s in items if isinstance(s.ctx, ast.Load))
        others = tuple(self._others(held, {held, *(s.value for s in items)}))
        return Lookup(node, held, key, tuple(statements), reads, others, any(self._is_text(part) for part in parts))

    def _others(self, held: ast.expr, known: set[ast.expr]) -> Iterator[ast.expr]:
        """What else reads the attribute or the name ``held`` in this file; ``.clear()`` of it does not count."""
        attributed = isinstance(held, ast.Attribute)
        for e in self.syntax.by_type[ast.Attribute if attributed else ast.Name]:
            assert isinstance(e, (ast.Attribute, ast.Name))
            same = (
                e.attr == getattr(held, "attr", "") if isinstance(e, ast.Attribute) else e.id == getattr(held, "id", "")
            )
            emptied = isinstance(parent := self.syntax.parents[e], ast.Attribute) and parent.attr == "clear"
            if same and isinstance(e.ctx, ast.Load) and e not in known and not emptied:
                yield e

    def _is_item(self, s: ast.Subscript, held: ast.expr, key: ast.expr) -> bool:
        if not (same_expression(s.value, held) and same_expression(s.slice, key)):
            return False
        pairs = zip(self._names(key, held), self._names(s.slice, s.value), strict=True)
        return all(set(self.inference.definitions(a)) == set(self.inference.definitions(b)) for a, b in pairs)

    @staticmethod
    def _names(*expressions: ast.expr) -> list[ast.Name]:
        return [n for e in expressions for n in ast.walk(e) if isinstance(n, ast.Name)]

    def _outlives(self, held: ast.expr) -> bool:
        """Whether ``held`` is a dictionary of an object or of the module."""
        if (own := self.inference.instance_attribute(held)) is not None:
            stores = self.inference.class_facts(own[0]).stores.get(own[1], [])
            return bool(stores) and all(s.value is not None and self._makes_dict(s.value) for s in stores)
        if not isinstance(held, ast.Name):
            return False
        found = self.inference.definitions(held)
        if found:  # of a function around this one
            values = [d.value if d.how == "assign" and not d.path else None for d in found]
            inside = {self.syntax.function_of(d.node) for d in found}
            if self.syntax.function_of(held) in inside:
                return False
        else:
            values = [s.value for s in self._of_module() for t in _targets(s) if getattr(t, "id", "") == held.id]
        return bool(values) and all(v is not None and self._makes_dict(v) for v in values)

    def _of_module(self) -> Iterator[ast.Assign | ast.AnnAssign]:
        """What is assigned at the top level of the module."""
        for s in (*self.syntax.by_type[ast.Assign], *self.syntax.by_type[ast.AnnAssign]):
            around = self.syntax.around(s)
            if isinstance(s, (ast.Assign, ast.AnnAssign)) and around.function is None and around.cls is None:
                yield s

    def _makes_dict(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call):
            name = e.func.attr if isinstance(e.func, ast.Attribute) else getattr(e.func, "id", "")
            return name in _DICTS
        return isinstance(e, ast.Dict)

    def _parts(self, key: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
        """What the key consists of, through names and tuples."""
        if isinstance(key, ast.Tuple):
            for item in key.elts:
                yield from self._parts(item, depth)
        elif isinstance(key, ast.Name) and not self._sizes.is_size(key) and depth < _DEEPEST:
            found = self.inference.definitions(key)
            values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
            if values and len(values) == len(found):
                for value in values:
                    yield from self._parts(value, depth + 1)
            else:
                yield key
        else:
            yield key

    def _has_size(self, part: ast.expr) -> bool:
        """Whether a size is in it: read from a shape, or what a tensor is made of in the same function."""
        inner = [n for n in ast.walk(part) if isinstance(n, ast.expr)]
        if any(self._sizes.is_size(n) or self._sizes.is_shape(n) for n in inner):
            return True
        names = [n for n in inner if isinstance(n, ast.Name)]
        return any(self._makes_sizes(n) for n in names)

    def _makes_sizes(self, name: ast.Name) -> bool:
        """Whether the parameter ``name`` is the size of a tensor that its function makes."""
        found = set(self.inference.definitions(name))
        function = self.syntax.function_of(name)
        if function is None or not found or any(d.how != "parameter" for d in found):
            return False
        calls = (c for c in self.syntax.own(function, ast.Call) if isinstance(c, ast.Call))
        made = [c for c in calls if self.syntax.qualified(c.func) in api.CREATORS]
        return any(self._origin(n) == found for c in made for a in c.args for n in self._names(a))

    def _origin(self, name: ast.Name) -> set[Definition]:
        """What binds ``name``, or binds the name that it is taken out of: ``h, w = size``."""
        found = set(self.inference.definitions(name))
        values = [d.value for d in found if d.how == "assign"]
        whole = values[0] if len(values) == len(found) == 1 else None
        return set(self.inference.definitions(whole)) if isinstance(whole, ast.Name) else found

    @staticmethod
    def _is_text(part: ast.expr) -> bool:
        makers = ("str", "repr", "format", "join", "hash")
        calls = [n.func for n in ast.walk(part) if isinstance(n, ast.Call)]
        named = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}
        percent = [n for n in ast.walk(part) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)]
        return (
            any(isinstance(n, ast.JoinedStr) for n in ast.walk(part))
            or not named.isdisjoint(makers)
            or any(isinstance(n.left, ast.Constant) and isinstance(n.left.value, str) for n in percent)
        )


def _targets(s: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return s.targets if isinstance(s, ast.Assign) else [s.target]
