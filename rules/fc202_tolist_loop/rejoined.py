"""Lists of chunks that are put together again: then the number of chunks makes no difference."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.chunked.chunks import Chunks, Split, is_plain
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import integer

_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
#: Methods that treat each row by itself.
_BY_ELEMENT = frozenset("to type float half bfloat16 double contiguous clone detach".split())
#: Functions that are called by other names: what they return goes to the user.
_PUBLIC = frozenset({"forward", "__call__"})


@dataclass(frozen=True)
class Rejoined:
    """A ``tolist`` whose numbers are sizes of ``splits`` alone. ``obstacle``: why one chunk would not do."""

    read: ast.Call
    splits: tuple[Split, ...]
    obstacle: str = ""

    @property
    def lengths(self) -> ast.expr:
        """The tensor of lengths."""
        assert isinstance(self.read.func, ast.Attribute)
        return self.read.func.value


class Rejoining(Analysis):
    """Looks for places in the file that take the chunks apart."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.chunks = facts.ask(Chunks)

    def of(self, read: ast.Call) -> Rejoined | None:
        """What ``read`` (``x.tolist()``) is for, or None when its numbers are not sizes of splits alone."""
        splits = self._splits(read)
        if not splits:
            return None
        apart = (self._apart(s.call, s.dim, set()) for s in splits)
        return Rejoined(read, splits, self._why_not_one(read, splits[0]) or _first(apart))

    def _splits(self, read: ast.Call) -> tuple[Split, ...]:
        parent = self.syntax.parents[read]
        uses: list[ast.Name] | None = None
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is read:
            uses = self.readers(parent.targets[0])
        around = [(use, self.syntax.parents[use]) for use in uses] if uses is not None else [(read, parent)]
        found = [s for use, p in around if (s := self.chunks.split_of(p)) is not None and s.sizes is use]
        return tuple(found) if len(found) == len(around) else ()

    def _why_not_one(self, read: ast.Call, split: Split) -> str:
        """Why a single size cannot be written where the sizes are read."""
        anchor = self.syntax.statement_of(read)
        if split.dim is None:
            return "the dimension of the split is not written down"
        if not self.syntax.alone(anchor):
            return "the line holds more than this statement"
        text = ast.unparse(split.tensor)
        if not is_plain(split.tensor):
            return f"`{text}` would be computed twice"
        names = [n for e in (split.tensor, read) for n in ast.walk(e) if isinstance(n, (ast.Name, ast.NamedExpr))]
        bound = [d for n in names if isinstance(n, ast.Name) for d in self.inference.definitions(n)]
        above = all(getattr(d.node, "lineno", 0) < anchor.lineno for d in bound)
        return "" if above and not any(isinstance(n, ast.NamedExpr) for n in names) else f"`{text}` is bound later"

    def _apart(self, e: ast.expr, dim: int | None, seen: set[ast.AST]) -> str:
        """Where the list ``e`` is used for more than to concatenate it, as far as names and calls of this file go."""
        if e in seen:
            return ""
        seen.add(e)
        parent, uses = self.syntax.parents[e], list[ast.expr]()
        match parent:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)]):
                return f"the chunks are kept in `self.{attr}`"
            case ast.Assign(targets=[ast.Attribute(attr=attr)]):
                return self._walked(attr)
            case ast.keyword(arg=str(attr)) if last_name(getattr(self.syntax.parents[parent], "func", e))[:1].isupper():
                return self._walked(attr)
            case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                uses += self.readers(target) or ()
            case ast.Return():
                function = self.syntax.function_of(parent)
                if function is None or function.name in _PUBLIC:
                    return "the chunks are what the model returns"
                calls = [c for c in self.syntax.by_type[ast.Call] if isinstance(c, ast.Call)]
                uses += [c for c in calls if last_name(c.func) == function.name and self.facts.reached(c)]
            case ast.comprehension() if self._is_by_rows(parent, e):
                uses += [p for p in (self.syntax.parents[parent],) if isinstance(p, ast.expr)]
            case ast.Call(args=[first]) if first is e and self.syntax.builtin(parent) in ("list", "tuple"):
                uses.append(parent)
            case ast.Call(args=[first, *more], keywords=named) if first is e and self._is_join(parent):
                along = [*more, *(k.value for k in named)]
                same = (integer(along[0]) if along else 0) == dim
                return "" if same else "the chunks are put together along another dimension"
            case ast.ListComp(elt=element) if element is e and self._is_kept(parent):
                return ""
            case ast.Compare() | ast.Attribute():
                return ""
            case _:
                return f"the chunks are used one by one, in line {e.lineno}"
        return _first(self._apart(use, dim, seen) for use in uses)

    def _is_kept(self, lists: ast.AST) -> bool:
        """Whether ``lists`` of chunks are what an attribute of another object holds."""
        match self.syntax.parents[lists]:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=held))]):
                return held != "self"
        return False

    def _is_join(self, call: ast.Call) -> bool:
        return self.syntax.qualified(call.func) in _JOINS

    def _is_by_rows(self, generator: ast.comprehension, chunks: ast.expr) -> bool:
        """Whether ``generator`` goes over ``chunks``, for a list of what methods make of each row of them."""
        around, target = self.syntax.parents[generator], generator.target
        listed = isinstance(around, (ast.ListComp, ast.GeneratorExp)) and generator.iter is chunks
        return listed and isinstance(target, ast.Name) and _of_rows(around.elt, target.id)  # type: ignore[attr-defined]

    def _walked(self, attr: str) -> str:
        """Where compiled code of this file goes through what is read from an attribute of that name."""
        for e in (n for n in self.syntax.by_type[ast.Attribute] if isinstance(n, ast.Attribute) and n.attr == attr):
            parent = self.syntax.parents[e]
            loop = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is e
            loop &= not (isinstance(parent, ast.comprehension) and self._is_by_rows(parent, e))
            counted = isinstance(parent, ast.Call) and self.syntax.builtin(parent) in ("zip", "enumerate", "len")
            if (loop or counted) and self.facts.reached(e):
                return f"the chunks are used one by one, in line {e.lineno}"
        return ""


def _of_rows(e: ast.expr, chunk: str) -> bool:
    """Whether ``e`` is ``chunk``, or made of it by methods of which the next takes the result."""
    while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
        in_rows = e.func.attr in ("reshape", "view") and [integer(a) for a in e.args[:1]] == [-1]
        if e.func.attr not in _BY_ELEMENT and not in_rows:
            return False
        e = e.func.value
    return isinstance(e, ast.Name) and e.id == chunk


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")
