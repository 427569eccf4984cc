"""A loop that picks the rows of one group after the other, and the same sums over all rows: "experts" in most models.

Each round picks rows by index (``places, rows = torch.where(mask[e])``), computes something of each row, weighs it, and
adds it to the rows of a result. Over all rows, with zero where a row is not picked, the sums are the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from patcher.facts.analysis import Analysis
from patcher.facts.masks.listed import listed
from patcher.facts.syntax.written import is_stored, short

#: An expression longer than this gets a line of its own.
_LONG = 24


class Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """The loop has no such form; the text says why."""


@dataclass(frozen=True)
class GroupLoop:
    """A loop with the one statement ``pick`` that picks rows by ``mask``.

    ``hits``: the expression that lists the groups with any rows, or None where the loop goes over what the host knows.
    ``whole``: the mask of all groups, and ``count`` how many there are, for such ``hits``.
    """

    loop: ast.For
    pick: ast.Assign
    mask: ast.expr
    hits: ast.expr | None = None
    whole: str = ""
    count: str = ""


class GroupLoops(Analysis):
    """Finds such loops."""

    def of(self, loop: ast.For) -> GroupLoop | None:
        """``loop``, when each round of it picks the rows of another group."""
        picks = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Assign) and self._mask(n) is not None]
        if len(picks) != 1 or loop.orelse or not isinstance(self.syntax.parents[picks[0]], (ast.For, ast.If)):
            return None
        mask, hits = self._mask(picks[0]), self._meaning(loop.iter)
        assert mask is not None
        own = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        sources = list(self._sources(mask))
        if not own & {n.id for n in sources if isinstance(n, ast.Name)}:
            return None
        if not any(listed(n, self.syntax) for n in ast.walk(hits)):
            return GroupLoop(loop, picks[0], mask) if self._is_plain(hits) else None
        if isinstance(hits, ast.IfExp) or not isinstance(loop.target, ast.Name):
            return None
        asked = {n.id for n in self._sources(hits) if isinstance(n, ast.Name)}
        parts = [n.value for n in sources if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
        whole = next((p.id for p in parts if isinstance(p, ast.Name) and p.id in asked), "")
        reads = [n for n in self.syntax.by_type[ast.Name] if isinstance(n, ast.Name) and n.id == ast.unparse(loop.iter)]
        mine = [n for n in reads if self.syntax.function_of(n) is self.syntax.function_of(loop)]
        if not whole or (hits is not loop.iter and len(mine) != 2):
            return None
        return GroupLoop(loop, picks[0], mask, hits, whole, self._count(loop, whole, sources))

    def _mask(self, s: ast.Assign) -> ast.expr | None:
        """The mask in ``a, b = torch.where(mask)`` and its like."""
        match s.targets:
            case [ast.Tuple(elts=[ast.Name(), ast.Name()])]:
                found = listed(s.value, self.syntax)
                return found[0] if found is not None and found[1] else None
        return None

    def _meaning(self, e: ast.expr) -> ast.expr:
        """``e``, or the one expression that a name stands for."""
        definitions = self.inference.definitions(e) if isinstance(e, ast.Name) else ()
        one = next(iter(definitions)) if len(definitions) == 1 else None
        return one.value if one is not None and one.how == "assign" and one.value is not None and not one.path else e

    def _sources(self, e: ast.expr, depth: int = 6) -> Iterator[ast.AST]:
        """The parts of ``e``, and of what its names stand for."""
        for n in ast.walk(e):
            yield n
            if isinstance(n, ast.Name) and depth and (meant := self._meaning(n)) is not n:
                yield from self._sources(meant, depth - 1)

    def _is_plain(self, e: ast.expr) -> bool:
        """Whether the host knows what a loop over ``e`` visits: a range, or modules."""
        match e:
            case ast.Call(func=ast.Name(id="range" | "enumerate" | "zip" | "reversed" | "list" as name), args=args):
                return name == "range" or all(self._is_plain(a) for a in args)
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values" | "keys" | "children"), args=[]):
                return self._is_plain(value)
            case ast.Attribute():
                held = self.inference.of(e)
                return not held.is_tensor and not held.data
        return isinstance(e, (ast.List, ast.Tuple))

    def _count(self, loop: ast.For, whole: str, sources: list[ast.AST]) -> str:
        """How many groups there are; ``n`` of ``one_hot(x, n + 1)``, unless the loop itself leaves out the last."""
        tests = [ast.unparse(s.test) for s in loop.body if isinstance(s, ast.If)]
        for n in sources:
            if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("one_hot"):
                for size in [*n.args[1:], *(k.value for k in n.keywords)]:
                    if isinstance(size, ast.BinOp) and ast.unparse(size).endswith(" + 1"):
                        count = ast.unparse(size.left)
                        if not any(t.endswith(count) for t in tests):
                            return count
        return f"{whole}.shape[0]"


@dataclass(frozen=True)
class Sum:
    """A statement that adds ``source`` to the rows ``at`` of ``into``; ``anew``: into another tensor."""

    into: str
    at: str
    source: ast.expr
    anew: bool = False


class OverAllRows(ast.NodeTransformer):
    """Writes ``found`` over all rows, with names for the mask of rows, their weights, and what is added up.

    ``foreign``: how the calls are written that may change in place what they get.
    """

    def __init__(self, found: GroupLoop, foreign: set[str], mask: str, weights: str, rows: str) -> None:
        self.found, self.foreign, self.mask, self.weights, self.summed = found, foreign, mask, weights, rows
        self.names = [e.id for e in found.pick.targets[0].elts]  # type: ignore[attr-defined]
        sums = [s for n in ast.walk(found.loop) if isinstance(n, ast.stmt) and (s := _sum(n)) is not None]
        self.rows = next((s.at for s in sums if s.at in self.names), "")
        self.stored = {n.id for s in found.loop.body for n in ast.walk(s) if is_stored(n)}
        counts = [f.format(n) for n in self.names for f in ("{}.numel()", "{}.shape[0]", "{}.size(0)", "len({})")]
        self.empty = {f.format(c) for c in counts for f in ("{} == 0", "not {}", "{} < 1")}
        self.some = {f.format(c) for c in counts for f in ("{}", "{} > 0", "{} != 0", "{} >= 1")}
        target = found.loop.target.id if found.hits is not None and isinstance(found.loop.target, ast.Name) else ""
        ways = ("{}", "{}[0]", "{}.item()", "{}[0].item()", "int({})", "int({}[0])", "int({}.item())")
        self.numbers = {way.format(target) for way in ways if target}
        self.group, self.named = target, False
        self.weighed, self.raw = "", set[str]()

    def loop(self) -> str:
        """The loop over all groups. Raises Refused when the original does more than to compute on what it picks."""
        (loop,) = ast.parse(ast.unparse(self.found.loop)).body
        assert isinstance(loop, ast.For)
        if any(isinstance(n, (ast.Return, ast.Break, ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(loop)):
            raise Refused("the loop ends early")
        match loop.body[0]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if ast.unparse(value) in self.numbers:
                self.group, self.named = name, True
                del loop.body[0]
        loop.body = self._block(loop.body)
        left = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name)} & {*self.names}
        if left or not self.rows:
            raise Refused(f"`{min(left or self.names)}` is used for more than picking rows that are added up")
        if self.numbers:
            loop.target = ast.Name(self.group, ast.Store())
            loop.iter = ast.parse(f"range({self.found.count})", mode="eval").body
        here = f"\n[ ]*{self.weights} = None"
        text = ast.unparse(ast.fix_missing_locations(loop))
        return re.sub(here, lambda m: m[0][: -len("None")] + self.weighed if self.weighed else "", text)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.visit(s) for s in body]
        return [line for m in made for line in (m if isinstance(m, list) else [m])]

    # --- statements -------------------------------------------------------------------------------------------------

    def visit_If(self, s: ast.If) -> ast.stmt | list[ast.stmt]:
        """A branch; of those that ask for rows, what is done when there are some."""
        test = ast.unparse(s.test)
        if not s.orelse and test in self.empty and isinstance(s.body[0], ast.Continue):
            return []
        if not s.orelse and test in self.some:
            return self._block(s.body)
        asked, before, body = self.visit(s.test), self.raw, self._block(s.body)
        after, self.raw = self.raw, before
        made = ast.If(asked, body or [ast.Pass()], self._block(s.orelse))
        self.raw |= after
        return made

    def visit_Assign(self, s: ast.Assign) -> ast.AST | list[ast.stmt]:
        """What picks, a sum, or a computation."""
        if ast.dump(s) == ast.dump(self.found.pick):
            return self._pick()
        raw, names = self._is_raw(s.value), {ast.unparse(t) for t in s.targets}
        made = self.visit_Expr(s)
        self.raw = self.raw | names if raw else self.raw - names
        return made

    def visit_AugAssign(self, s: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        """A sum, or a computation in place."""
        if isinstance(s.target, ast.Name) and s.target.id in self.raw:
            raise Refused(f"`{short(s)}` changes rows in place")
        return self.visit_Expr(s)

    def visit_Expr(self, s: ast.stmt) -> ast.AST | list[ast.stmt]:
        """A sum, or anything else."""
        added = _sum(s)
        if added is None or added.at != self.rows:
            return self.generic_visit(s)
        source, text = ast.unparse(self.visit(added.source)), ""
        if len(source) > _LONG:
            text, source = f"{self.summed} = {source}\n", self.summed
        chosen = f"torch.where({self.mask}.any(-1, keepdim=True), {source}, 0)"
        into = added.into
        return ast.parse(text + (f"{into} = {into} + {chosen}" if added.anew else f"{into}.add_({chosen})")).body

    def _pick(self) -> list[ast.stmt]:
        """The mask of rows, and a place for what they are weighed by."""
        mask = ast.parse(ast.unparse(self.found.mask), mode="eval").body
        if self.numbers and not self.named and ast.unparse(mask).endswith(".squeeze(0)"):
            mask = mask.func.value  # type: ignore[attr-defined]
        mask = self.visit(mask)
        text = f"({ast.unparse(mask)})" if isinstance(mask, ast.Compare) else f"{ast.unparse(mask)}.bool()"
        return ast.parse(f"{self.mask} = {text}{'.T' * (self.names[1] == self.rows)}\n{self.weights} = None").body

    # --- expressions ------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Any:
        """``node`` over all rows; the number of the group wherever it is read."""
        if isinstance(node, (ast.Name, ast.Call, ast.Subscript)) and ast.unparse(node) in self.numbers:
            return ast.Name(self.group, node.ctx if isinstance(node, ast.Name) else ast.Load())
        return super().visit(node)

    def visit_Subscript(self, e: ast.Subscript) -> ast.AST:
        """All rows, or the weights of all rows: zero where a row is not picked."""
        at = [ast.unparse(p) for p in (e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice])]
        if at in ([self.rows], ["None", self.rows]):
            everything: ast.AST = self.visit(e.value)
            return everything
        if sorted(at[:2]) != sorted(self.names) or at[2:] not in ([], ["None"]):
            return self.generic_visit(e)
        whole = ast.unparse(e.value) + ".T" * (at[0] != self.rows)
        keep = ", keepdim=True" * len(at[2:])
        weighed = f"torch.where({self.mask}, {whole}[:, : {self.mask}.shape[1]], 0).sum(-1{keep})"
        if self.weighed not in ("", weighed) or any(n.id in self.stored for n in _names(e.value)):
            raise Refused(f"`{short(e)}` is not the one weight of the rows")
        self.weighed = weighed
        return ast.Name(self.weights, ast.Load())

    def visit_Call(self, e: ast.Call) -> ast.AST:
        """A call; a module gets a copy of the rows, for it may change them."""
        copied = [ast.unparse(e.func) in self.foreign and self._is_raw(a) for a in e.args]
        made = self.generic_visit(e)
        assert isinstance(made, ast.Call)
        for i in (i for i, c in enumerate(copied) if c):
            made.args[i] = ast.Call(ast.Attribute(made.args[i], "clone", ast.Load()), [], [])
        return made

    def _is_raw(self, e: ast.expr) -> bool:
        """Whether ``e`` may be what rows are picked from, or a view of it."""
        match e:
            case ast.Call(func=ast.Attribute(value=value)):
                return self._is_raw(value)
            case ast.Subscript(value=value, slice=at):
                return ast.unparse(at) in (self.rows, f"(None, {self.rows})", f"None, {self.rows}")
        return isinstance(e, ast.Name) and e.id in self.raw


def _names(e: ast.expr) -> list[ast.Name]:
    return [n for n in ast.walk(e) if isinstance(n, ast.Name)]


def _sum(s: ast.stmt) -> Sum | None:
    """``into.index_add_(0, at, source)`` and its like."""
    match s:
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=into), slice=ast.Name(id=at)), op=ast.Add()):
            return Sum(into, at, s.value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=into), attr="index_add_")) as call):
            anew = False
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=into), attr="index_add" | "index_add_" as how)) as call,
        ) if name == into:
            anew = how == "index_add"
        case _:
            return None
    given = dict(zip(("dim", "index", "source"), call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    match given:
        case {"dim": ast.Constant(value=0), "index": ast.Name(id=at), "source": source} if len(given) == 3:
            return Sum(into, at, source, anew)
    return None
