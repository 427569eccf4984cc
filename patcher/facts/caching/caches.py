"""Which classes keep keys, values or other sequence state in buffers, how far they are filled, and who reads that.

A cache, whatever it is called, has all of: a buffer of three dimensions or more (per-layer lists count as one) that its
initialiser makes; an index, an integer tensor or Python integers made there too; a method that writes the buffer at
a place computed from the index, behind the first dimension; a method that advances the index by adding to it; and a
method that reads a prefix of the buffer, or all of it. An index that wraps round is a queue's, not a cache's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis, ClassAnalysis
from patcher.facts.caching.bookkeeping import Bookkeeping, CacheMethod
from patcher.facts.caching.origins import CREATES, WRAPS, Origins, elements_of, is_python, parts_of
from patcher.facts.syntax.classes import pairs
from patcher.facts.syntax.tree import Syntax, last_name, own_nodes
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Category

_WHOLE = ast.Slice()


@dataclass(frozen=True, eq=False)
class Cache:
    """A cache class. ``index`` and ``buffers`` are attribute names; ``foreign``: an amount that is tensor data."""

    cls: ast.ClassDef
    buffers: frozenset[str]
    index: frozenset[str]
    methods: tuple[CacheMethod, ...]
    foreign: ast.expr | None


@dataclass(frozen=True)
class _Write:
    """``part`` of the subscript, at ``position``, says where in ``attribute`` the new rows go."""

    attribute: str
    part: ast.expr
    position: int


def _candidates(syntax: Syntax) -> frozenset[ast.ClassDef]:
    """The classes that both make a tensor and write into something, which is what most classes do not."""
    making: set[ast.ClassDef | None] = set()
    writing: set[ast.ClassDef | None] = set()
    for call in syntax.by_type[ast.Call]:
        last = last_name(call.func)
        if last in CREATES:
            making.add(syntax.class_of(call))
        elif last in ("copy_", "fill_", "index_copy_"):
            writing.add(syntax.class_of(call))
    if making:
        for n in syntax.by_type[ast.Subscript]:
            if isinstance(n.ctx, ast.Store):
                writing.add(syntax.class_of(n))
    return frozenset(c for c in making & writing if c is not None)


class Caches(Analysis):
    """The caches of keys and values of a module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._candidates = _candidates(self.syntax)
        self._known: dict[ast.ClassDef, Cache | None] = {}

    def of(self, cls: ast.ClassDef) -> Cache | None:
        """``cls`` as a cache, or None when it is none as far as can be told."""
        if cls not in self._known:
            self._known[cls] = _Reading(self.facts, cls).cache() if cls in self._candidates else None
        return self._known[cls]

    def hold(self, node: ast.AST) -> bool:
        """Whether ``node`` stands in a cache."""
        cls = self.syntax.class_of(node) if self._candidates else None
        return cls is not None and self.of(cls) is not None


class _Reading(ClassAnalysis):
    """One class, read with the question whether it is a cache."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.origins = Origins(facts, cls)
        self.tensors: frozenset[str] = frozenset()
        self.methods = [f for f in self.origins.methods if f not in self.origins.initial]

    def cache(self) -> Cache | None:
        made = self._made()
        self.tensors = frozenset(a for a, values in made.items() if any(map(self._is_tensor, values)))
        indices = {a for a, values in made.items() if values and all(self._counts(v) for v in values)}
        stores = {a for a, values in made.items() if values and all(self._stores(v) for v in values)}
        if not indices or not stores:
            return None
        writes = [w for m in self.methods for n in own_nodes(m) for w in self._writes(n) if w.attribute in stores]
        advanced = frozenset(indices) & self._advanced()
        index: set[str] = set()
        buffers: set[str] = set()
        for w in writes:
            places = self._place(w)
            if w.position >= 1 and places & advanced and WRAPS not in places:
                index |= places & advanced
                buffers.add(w.attribute)
        buffers = {b for b in buffers if self._dimensions(b, made[b]) >= 3 and self._read_back(b)}
        if not buffers:
            return None
        # The other half of a pair is written like the first, but may not be read or sized in a way that is understood.
        buffers |= {w.attribute for w in writes if self._place(w) & index}
        books = Bookkeeping(self.origins, frozenset(self.members.stores))
        return Cache(
            self.cls,
            frozenset(buffers),
            frozenset(index),
            tuple(books.methods(self.methods, frozenset(index), frozenset(buffers), self.tensors & indices)),
            self._foreign(writes, frozenset(indices | stores), frozenset(index)),
        )

    # --- what the initialiser makes ---------------------------------------------------------------------------------

    def _made(self) -> dict[str, list[ast.expr]]:
        """Attribute -> what the initialisers (and the methods that they call) store in it."""
        initial = self.origins.initial
        first = initial | {f for i in initial for _, f in self.origins.calls[i]}
        made: dict[str, list[ast.expr]] = {}
        for name, stores in self.members.stores.items():
            values = [s.value for s in stores if s.value is not None and s.method in first and s.how != "other"]
            if not values:
                values = [v for s in stores if s.method is None and (v := _declared(s.value)) is not None]
            empty = [v for v in values if isinstance(v, (ast.List, ast.Dict)) and not ast.unparse(v)[1:-1]]
            made[name] = [v for v in values if v not in empty]
        for name, items in self.members.appended.items():
            made.setdefault(name, []).extend(value for method, value in items if method in first)
        return made

    def _counts(self, e: ast.expr) -> bool:
        """Whether ``e`` is an integer, an integer tensor, or a list of one of these."""
        inner = elements_of(e)
        if inner is not None:
            return bool(inner) and all(map(self._counts, inner))
        if isinstance(e, ast.Constant):
            return isinstance(e.value, int) and not isinstance(e.value, bool)
        value = self.inference.of(e)
        if value.is_tensor:
            if value.dtype is not None and value.dtype.category is Category.INT:
                return True
            if isinstance(e, ast.Call) and e.args and not any(k.arg == "dtype" for k in e.keywords):
                match self.syntax.qualified(e.func):
                    case "torch.tensor":
                        return elements_of(e.args[0]) is not None and self._counts(e.args[0])
                    case "torch.arange":
                        return not any(self.inference.of(a).python == "float" for a in e.args)
            return False
        return value.python in ("int", "size")

    def _is_tensor(self, e: ast.expr) -> bool:
        inner = elements_of(e)
        return any(map(self._is_tensor, inner)) if inner is not None else self.inference.of(e).is_tensor

    def _stores(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor that may be floating, or a list of such."""
        inner = elements_of(e)
        if inner is not None:
            return bool(inner) and all(map(self._stores, inner))
        value = self.inference.of(e)
        integral = value.dtype is not None and value.dtype.category in (Category.INT, Category.BOOL)
        return value.is_tensor and not integral

    def _dimensions(self, attribute: str, made: list[ast.expr]) -> int:
        """The least number of dimensions that ``attribute`` has, a list of tensors counting as one dimension more."""
        least = [(self.origins.rank(e) or 0) + (elements_of(e) is not None) for e in made]
        deepest = 0
        for m in self.methods:
            for n in own_nodes(m):
                if isinstance(n, ast.Subscript) and (found := self._chain(n)) and found[0] == attribute:
                    deepest = max(deepest, sum(1 for p in found[1] if not _no_dimension(p)))
        return max([deepest, *least])

    # --- what the methods do ----------------------------------------------------------------------------------------

    def _chain(self, e: ast.expr, depth: int = 0) -> tuple[str, list[ast.expr]] | None:
        """The attribute that a chain of subscripts starts from, and all its subscripts; also through a local name."""
        match e:
            case ast.Attribute():
                name = self.origins.attribute(e)
                return (name, []) if name is not None else None
            case ast.Subscript(value=value, slice=index):
                found = self._chain(value, depth)
                parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
                return (found[0], [*found[1], *parts]) if found is not None else None
            case ast.Call(func=ast.Attribute(value=value, attr="narrow"), args=[dim, start, _]):
                found = self._chain(value, depth)
                before = _position(dim)
                if found is None or before is None:
                    return None
                return found[0], [*found[1], *[_WHOLE] * before, ast.Slice(lower=start)]
            case ast.Name() if depth < 4:
                values = [part for d in self.inference.definitions(e) for part in parts_of(d)]
                if len(values) == 1 and isinstance(values[0], ast.expr):
                    return self._chain(values[0], depth + 1)
        return None

    def _writes(self, n: ast.AST) -> Iterator[_Write]:
        """The places of a buffer that the statement or call ``n`` writes."""
        targets: list[ast.expr] = []
        extra: list[ast.expr] = []
        match n:
            case ast.Assign(targets=found):
                targets = [t for t in found if isinstance(t, ast.Subscript)]
            case ast.AugAssign(target=ast.Subscript() as place):
                targets = [place]
            case ast.Call(func=ast.Attribute(value=value, attr="copy_" | "fill_"), args=[_, *_]):
                targets = [value]
            case ast.Call(func=ast.Attribute(value=value, attr="index_copy_"), args=[dim, places, _]):
                before = _position(dim)
                if before is not None:
                    targets, extra = [value], [*[_WHOLE] * before, places]
        for target in targets:
            chain = self._chain(target)
            if chain is None:
                continue
            for position, part in enumerate([*chain[1], *extra]):
                yield _Write(chain[0], part, position)

    def _place(self, w: _Write) -> frozenset[str]:
        """Origins of the place where a write starts; none when it names a single row."""
        if isinstance(w.part, ast.Slice):
            return self.origins.of(w.part.lower) if w.part.lower is not None else frozenset()
        origins = self.origins.of(w.part)
        return origins if origins & self.tensors and not is_python(self.inference, w.part) else frozenset()

    def _advanced(self) -> frozenset[str]:
        """The attributes that a method other than the initialiser adds to."""
        found: set[str] = set()
        wraps: set[str] = set()
        for m in self.methods:
            for n in own_nodes(m):
                for attribute, value in self._stored(n):
                    origins = self.origins.of(value)
                    if WRAPS in origins:
                        wraps.add(attribute)
                    if isinstance(n, (ast.AugAssign, ast.Call)) or attribute in origins:
                        found.add(attribute)
        return frozenset(found - wraps)

    def _stored(self, n: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> Iterator[tuple[str, ast.expr]]:
        """Attribute and new value (or what is added to it) for each store into ``self.x`` or ``self.x[i]`` in ``n``.

        ``seen``: the properties that have led to it, which may store by way of themselves.
        """
        stores: list[tuple[ast.expr, ast.expr]] = []
        match n:
            case ast.Assign(targets=targets, value=value):
                stores = [(t, v) for target in targets for t, v in pairs(target, value) if v is not None]
            case ast.AugAssign(target=target, op=ast.Add(), value=value):
                stores.append((target, value))
            case ast.Call(func=ast.Attribute(value=target, attr="add_"), args=[value, *_]):
                stores.append((target, value))
            case ast.Call(func=ast.Attribute(value=target, attr="copy_" | "fill_"), args=[value]):
                if (chain := self._chain(target)) is not None and chain[0] in self.origins.of(value):
                    stores.append((target, value))
        for target, value in stores:
            chain = self._chain(target)
            bound = isinstance(target, ast.Name) and not isinstance(n, ast.Call)  # a local, or a tensor that it names
            if chain is None or (bound and (isinstance(n, ast.Assign) or chain[0] not in self.tensors)):
                continue
            through = [f for f in self.origins.own.get(chain[0], ()) if f not in seen]  # a property that stores
            inner = {name for f in through for m in own_nodes(f) for name, _ in self._stored(m, seen | {f})}
            for name in inner or {chain[0]}:
                yield name, value

    def _read_back(self, buffer: str) -> bool:
        """Whether some method reads a prefix of ``buffer`` or all of it."""
        for m in self.methods:
            for n in own_nodes(m):
                if not isinstance(n, (ast.Attribute, ast.Subscript)) or not isinstance(n.ctx, ast.Load):
                    continue
                chain = self._chain(n)
                parent = self.syntax.parents[n]
                inner = isinstance(parent, ast.Subscript) and parent.value is n
                if chain is None or chain[0] != buffer or inner or self._is_receiver(n, parent):
                    continue
                if all(map(_is_prefix, chain[1][1:])) and (len(chain[1]) < 1 or not _starts_inside(chain[1][0])):
                    return True
        return False

    def _is_receiver(self, n: ast.AST, parent: ast.AST) -> bool:
        """Whether ``n`` is only written to, or asked about its shape."""
        if not (isinstance(parent, ast.Attribute) and parent.value is n):
            return False
        return parent.attr.endswith("_") or parent.attr in api.ABOUT

    def _foreign(self, writes: list[_Write], state: frozenset[str], index: frozenset[str]) -> ast.expr | None:
        """An amount that is read out of a tensor which is no state of the cache."""
        amounts: list[ast.expr] = []
        for w in writes:
            if isinstance(w.part, ast.Slice):
                amounts += [e for e in (w.part.lower, w.part.upper) if e is not None]
        for m in self.methods:
            for n in own_nodes(m):
                amounts += [value for attribute, value in self._stored(n) if attribute in index]
        return next((f for e in amounts if (f := self.origins.read_of_data(e, state)) is not None), None)


def _no_dimension(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and (part.value is None or part.value is ...)


def _position(dim: ast.expr) -> int | None:
    """The least number of dimensions before ``dim``, a constant; a negative one counts from the end."""
    match dim:
        case ast.Constant(value=int(n)):
            return n
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return 1
    return None


def _is_prefix(part: ast.expr) -> bool:
    return isinstance(part, (ast.Slice, ast.Constant)) and not _starts_inside(part)


def _starts_inside(part: ast.expr) -> bool:
    """Whether ``part`` is a slice that starts at a place which is computed; the last rows (``-n:``) are none."""
    return (
        isinstance(part, ast.Slice)
        and part.lower is not None
        and not isinstance(part.lower, ast.Constant)
        and not (isinstance(part.lower, ast.UnaryOp) and part.upper is None)
    )


def _declared(value: ast.expr | None) -> ast.expr | None:
    """The value that a class-level assignment gives, also through ``dataclasses.field(default=...)``."""
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        return next((k.value for k in value.keywords if k.arg == "default"), None)
    return value
