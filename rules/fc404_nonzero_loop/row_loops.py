"""A loop that picks the rows of one group after the other, and the same sums over all rows: "experts" in most models.

Each round of such a loop picks rows by index (``places, rows = torch.where(mask[e])``), computes something of each row,
weighs it, and adds it to the rows of a result. Over all rows, with a zero where a row is not picked, the sums are the
same and every shape is known.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.groups.row_values import FIXED, Held, Refused, RowValues, Sort
from patcher.facts.syntax.tree import FunctionNode, walk
from patcher.facts.tables import torch_api as api
from rules.fc404_nonzero_loop.group_counts import GroupCounts
from rules.fc404_nonzero_loop.group_hits import GroupHits, Hits

#: An expression longer than this gets a line of its own.
LONG = 24


@dataclass(frozen=True)
class RowLoop:
    """The loop in its static form.

    ``chosen``: the expression that gives the groups and reads tensor data, or the loop's own iterable. ``target`` and
    ``groups``: the header of the static loop. ``body``: its statements, as text. ``taken_for``: the callables that are
    taken to compute each row by itself. ``doubtful``: the mask that is taken to have no negative element, or "".
    ``counted``: what says how many rows each group has, when nothing but the loop reads it.
    """

    chosen: ast.expr
    target: str
    groups: str
    body: tuple[str, ...]
    taken_for: tuple[str, ...]
    doubtful: str = ""
    counted: ast.expr | None = None


class RowLoops(Analysis):
    """Finds such loops and writes their static form."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.hits = facts.ask(GroupHits)
        self.counts = facts.ask(GroupCounts)

    def may_be(self, loop: ast.For) -> bool:
        """A cheap test: whether ``loop`` goes over places that are not zero, or its body picks rows by such places."""
        if any(self._picked(n) is not None or _fills(n, loop) for s in loop.body for n in walk(s)):
            return True
        return self._lists_places and self.hits.of(loop.iter) is not None

    @cached_property
    def _lists_places(self) -> bool:
        attributes = self.syntax.by_type[ast.Attribute]
        return any(isinstance(a, ast.Attribute) and a.attr in ("nonzero", "where") for a in attributes)

    def of(self, loop: ast.For, names: tuple[str, str, str]) -> RowLoop | str | None:
        """The static form of ``loop``, with ``names`` for its mask, weights and rows; why there is none, or None."""
        if self.hits.none_when_compiled(loop.iter):
            return None
        picks = [n for s in loop.body for n in ast.walk(s) if self._picked(n) is not None]
        hits = self.hits.of(loop.iter)
        masked = any(_fills(n, loop) for s in loop.body for n in ast.walk(s))
        if not picks and (hits is not None or not masked):
            return None if hits is None else "what the loop does with a group is not known"
        if not picks and not self._by_mask(loop):
            return None
        try:
            return self._static(loop, hits, picks, names)
        except Refused as refusal:
            return str(refusal)

    def _by_mask(self, loop: ast.For) -> bool:
        """Whether the loop makes a mask of rows out of its own variable."""
        values = RowValues(self.facts)
        own = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        for s in loop.body:
            if isinstance(s, ast.Assign) and values.is_mask(s.value):
                for n in ast.walk(s.value):
                    sides = [n.left, *n.comparators] if isinstance(n, ast.Compare) else []
                    if any(isinstance(side, ast.Name) and side.id in own for side in sides):
                        return True
        return False

    def _picked(self, node: ast.AST) -> ast.expr | None:
        """The mask in ``a, b = torch.where(mask)`` and its like."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Tuple):
            return None
        target, value = node.targets[0], node.value
        if len(target.elts) != 2 or not all(isinstance(e, ast.Name) for e in target.elts):
            return None
        match value:
            case ast.Call(func=func, args=[mask], keywords=[]) if self.syntax.qualified(func) == "torch.where":
                return mask
            case ast.Call(func=func, args=[mask], keywords=[k]) if self.syntax.qualified(func) == "torch.nonzero":
                return mask if _as_tuple(k) else None
            case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[], keywords=[k]):
                return mask if _as_tuple(k) else None
        return None

    def _static(self, loop: ast.For, hits: Hits | None, picks: list[ast.AST], names: tuple[str, str, str]) -> RowLoop:
        function = self.syntax.function_of(loop)
        if function is None or loop.orelse:
            raise Refused("the loop has an `else`")
        if len(picks) > 1:
            raise Refused("the loop picks rows more than once")
        if hits is None and not self.hits.is_plain(loop.iter):
            raise Refused(f"which groups `{_short(loop.iter)}` gives is not known")
        self._stays_inside(loop, function)
        pick = picks[0] if picks else None
        assert pick is None or isinstance(pick, ast.Assign)
        writing = _Writing(self, loop, hits, pick, names)
        body = writing.lines()
        if not writing.added:
            raise Refused("the loop adds no weighted rows to a result")
        if hits is None:
            counted = self.hits.read_in(writing.counted, loop) if writing.counted is not None else None
            assumed, groups = writing.values.assumed(), ast.unparse(loop.iter)
            return RowLoop(loop.iter, _target(loop.target), groups, tuple(body), assumed, counted=counted)
        if writing.whole is None or not self.hits.same(writing.whole, hits.mask):
            raise Refused(f"the groups that `{_short(hits.chosen)}` leaves out may have rows")
        short = self.counts.short(loop, hits.count, writing.values.parts)
        if short is not None:
            body = [*self._absent(short, writing, hits.mask.id), *body]
        if not self.syntax.is_builtin(ast.Name("range", ast.Load())):
            raise Refused("`range` is another name here")
        groups, doubtful = f"range({hits.mask.id}.shape[0])", hits.mask.id if hits.doubtful else ""
        return RowLoop(hits.chosen, writing.values.group, groups, tuple(body), writing.values.assumed(), doubtful)

    def _absent(self, part: ast.expr, writing: _Writing, mask: str) -> list[str]:
        """Lines for groups that ``part`` has nothing for: rows that are sent there are an error, as they were."""
        bound = {n.id for s in writing.loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and _is_store(n)}
        if not self.counts.is_tensor(part) or bound & {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}:
            raise Refused(f"`{_short(part)}` may have fewer parts than there are groups")
        group = writing.values.group
        return [
            f"if {group} >= {ast.unparse(part)}.shape[0]:",
            f"    torch._assert_async({mask}[{group}].logical_not().all(), 'rows for a group that is not there')",
            "    continue",
        ]

    def _stays_inside(self, loop: ast.For, function: FunctionNode) -> None:
        """What the loop binds must not be read behind it, nor in the next round; sums are meant to be."""
        inside = set(ast.walk(loop))
        flow = self.flow_of(function)
        for node in inside:
            definition = flow.by_node.get(node)
            if definition is None:
                continue
            if definition.name in flow.captured:
                raise Refused(f"`{definition.name}` is read in a nested function")
            statement = self.syntax.statement_of(node)
            if isinstance(statement, ast.Assign) and _adds(statement.value, definition.name):
                continue
            for use in flow.uses.get(definition, ()):
                if use not in inside:
                    raise Refused(f"`{definition.name}` is read behind the loop")
                if statement is not loop and _place(self.syntax.statement_of(use)) <= _place(statement):
                    raise Refused(f"`{definition.name}` goes from one round into the next")


class _Writing:
    """One loop on its way into the static form."""

    def __init__(
        self, loops: RowLoops, loop: ast.For, hits: Hits | None, pick: ast.Assign | None, names: tuple[str, str, str]
    ) -> None:
        self.loops, self.loop, self.hits, self.pick = loops, loop, hits, pick
        self.mask, self.weights, self.sum = names
        self.values = RowValues(loops.facts, self.mask, self.weights)
        self.rows, self.places, self.transposed = "", "", False
        if pick is not None:
            target = pick.targets[0]
            assert isinstance(target, ast.Tuple)
            first, second = (e.id for e in target.elts if isinstance(e, ast.Name))
            self.rows, self.places = self._roles(first, second)
            self.transposed = self.rows == second
        self.whole: ast.Name | None = None
        self.added = False
        self.hits_of = loops.hits
        self.counted: ast.Subscript | None = None
        if hits is not None:
            if not isinstance(loop.target, ast.Name):
                raise Refused("the loop takes its groups apart")
            self.values.index(loop.target.id, hits.one_element)

    def _roles(self, first: str, second: str) -> tuple[str, str]:
        """Which of both names numbers the rows: the one that results are added at."""
        for node in ast.walk(self.loop):
            at = _added_at(node)
            if isinstance(at, ast.Name) and at.id in (first, second):
                return (first, second) if at.id == first else (second, first)
        raise Refused("the loop adds no weighted rows to a result")

    def block(self, body: list[ast.stmt]) -> list[str]:
        """The static form of ``body``, line by line."""
        lines: list[str] = []
        for i, s in enumerate(body):
            if _skips(s) and (counted := self.hits_of.none_of(s.test)) is not None:
                self.counted = counted
                continue
            if isinstance(s, ast.If) and (empty := self.values.emptiness(s.test)) is not None:
                if empty and [type(t) for t in s.body] == [ast.Continue] and not s.orelse:
                    continue
                if not empty and not s.orelse:
                    lines += self.block(s.body)
                    continue
                if not empty and [type(t) for t in s.orelse] == [ast.Continue]:
                    lines += self.block(s.body)
                    continue
                raise Refused(f"what happens without rows (`{_short(s.test)}`) is more than nothing")
            lines += self.statement(s, first=i == 0 and body is self.loop.body)
        return lines

    def statement(self, s: ast.stmt, first: bool) -> list[str]:
        values = self.values
        if s is self.pick:
            return [self.picked()]
        match s:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return []
            case ast.Continue():
                return ["continue"]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if (summed := self.summed(value)) is not None and summed[0] == name:
                    return summed[1]
                if self.hits is not None and values.is_index(value):
                    values.index(name, one_element=False)
                    if first:
                        values.group = name
                        return []
                    return [] if name == values.group else [f"{name} = {values.group}"]
                if self.pick is None and values.is_mask(value):
                    line = f"{name} = {values.mask_written(value)}"
                    values.bind_mask(name, value)
                    return [line]
                held, line = values.of(value), f"{name} = {values.written(value)}"
                values.bind(name, held)
                return [line]
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=each) as value) if _are_names(
                targets
            ) and len(each) == len(targets):
                several = [values.of(v) for v in each]
                for t, held in zip(targets, several, strict=True):
                    assert isinstance(t, ast.Name)
                    values.bind(t.id, held)
                return [f"{', '.join(ast.unparse(t) for t in targets)} = {values.written(value)[1:-1]}"]
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if _are_names(targets):
                held = values.of(value)
                if held.sort not in (Sort.PARTS, Sort.FIXED):
                    raise Refused(f"`{_short(value)}` is not known to keep rows apart")
                for t in targets:
                    assert isinstance(t, ast.Name)
                    values.bind(t.id, Held(Sort.ROWS, held.raw) if held.sort is Sort.PARTS else FIXED)
                return [f"{', '.join(ast.unparse(t) for t in targets)} = {values.written(value)}"]
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                old = values.of(target)
                if old.sort is Sort.FIXED:
                    raise Refused(f"`{name}` goes from one round into the next")
                if type(op) not in _SIGNS or old.raw:
                    raise Refused(f"`{_short(s)}` changes rows in place")
                values.bind(name, values.binary(s, old, op, values.of(value)))
                right = values.written(value)
                bare = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
                return [f"{name} {_SIGNS[type(op)]}= {right if bare else f'({right})'}"]
            case ast.AugAssign(target=ast.Subscript(value=into, slice=ast.Name(id=at)), op=ast.Add(), value=value):
                if at == self.rows:
                    return self.add(into, value)
                if self.values.is_mask(ast.Name(at, ast.Load())):
                    return self.add(into, value, at)
            case ast.Assign(targets=[ast.Subscript(value=into, slice=ast.Name(id=at))], value=value):
                if self.values.is_mask(ast.Name(at, ast.Load())):
                    *before, rows = self.source(into, value, at)
                    return [*before, f"{ast.unparse(into)}.copy_({rows})"]
            case ast.Expr(value=ast.Call() as call):
                if (summed := self.summed(call)) is not None:
                    return summed[1]
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))], body=[inner]) if inner is self.pick:
                if self.loops.syntax.qualified(func) in api.GRAD_OFF:
                    return [self.picked()]
            case ast.If(test=test, body=body, orelse=orelse):
                return self.branch(test, body, orelse)
        raise Refused(f"`{_short(s)}` is more than a computation on rows")

    def branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[str]:
        """A branch that has nothing to do with rows stays one."""
        held = self.values.of(test)
        if held.sort is not Sort.FIXED or self.loops.inference.of(test).is_tensor:
            raise Refused(f"`{_short(test)}` reads rows")
        before = self.values.known()
        taken = self.block(body)
        after = self.values.known()
        self.values.restore(before)
        other = self.block(orelse)
        ends = [type(b[-1]) is ast.Continue if b else False for b in (body, orelse)]
        if ends[1] and not ends[0]:
            self.values.restore(after)
        elif not any(ends):
            self.values.meet(after)
        lines = [f"if {self.values.written(test)}:", *(f"    {line}" for line in taken or ["pass"])]
        return [*lines, "else:", *(f"    {line}" for line in other)] if other else lines

    def picked(self) -> str:
        mask = self.loops._picked(self.pick) if self.pick is not None else None
        assert mask is not None
        where, self.whole = self.values.mask(mask)
        self.values.pick(self.rows, self.places)
        if self.counted is not None and not self.hits_of.counts(self.counted, mask):
            raise Refused(f"`{_short(self.counted)}` does not count the rows of `{_short(mask)}`")
        if self.transposed:
            where = f"{where}.T" if where.endswith(".bool()") else f"({where}).T"
        return f"{self.mask} = {where}"

    def lines(self) -> list[str]:
        """The body of the static loop."""
        lines = self.block(self.loop.body)
        if not self.values.weights:
            return lines
        of_each = next(i for i, line in enumerate(lines) if line.lstrip().startswith(f"{self.mask} = "))
        indent = lines[of_each][: len(lines[of_each]) - len(lines[of_each].lstrip())]
        lines.insert(of_each + 1, f"{indent}{self.weights} = {self.values.weights}")
        return lines

    def summed(self, e: ast.expr) -> tuple[str, list[str]] | None:
        """``into.index_add_(0, rows, source)``: the name of ``into``, and the static form."""
        match e:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as into, attr="index_add_" | "index_add" as how)):
                pass
            case _:
                return None
        given = dict(zip(("dim", "index", "source"), e.args, strict=False))
        given |= {k.arg: k.value for k in e.keywords if k.arg is not None}
        dim, at, source = given.get("dim"), given.get("index"), given.get("source")
        if len(given) != 3 or not isinstance(dim, ast.Constant) or dim.value != 0 or source is None:
            raise Refused(f"`{_short(e)}` adds in a way that is not known")
        if not isinstance(at, ast.Name) or at.id != self.rows:
            raise Refused(f"`{_short(e)}` adds at other rows")
        if how == "index_add":
            *before, rows = self.source(into, source)
            return name, [*before, f"{name} = {name} + {rows}"]
        return name, self.add(into, source)

    def add(self, into: ast.expr, source: ast.expr, mask: str = "") -> list[str]:
        *before, rows = self.source(into, source, mask, added=True)
        return [*before, f"{ast.unparse(into)}.add_({rows})"]

    def source(self, into: ast.expr, source: ast.expr, mask: str = "", added: bool = False) -> list[str]:
        """What ``into`` is changed by, as the last of some lines; ``mask``: the name of a mask of rows."""
        if self.values.of(into).sort is not Sort.FIXED or not isinstance(into, ast.Name):
            raise Refused(f"`{_short(into)}` is made in the loop")
        if any(isinstance(n, ast.Name) and n.id == into.id and _reads_more(n, self.loop) for n in ast.walk(self.loop)):
            raise Refused(f"the loop reads `{into.id}`, which it adds to")
        sort = self.values.of(source).sort
        if sort is not Sort.WEIGHED and not (mask and sort is Sort.ROWS):
            raise Refused(f"`{_short(source)}` is not known to be rows with their weights")
        self.added = True
        text = self.values.written(source)
        before = []
        if len(text) > LONG or mask:
            before, text = [f"{self.sum} = {text}"], self.sum
        if mask:
            self.values.use_mask(mask)
            other = "0" if added else f"{into.id}.flatten(0, {mask}.dim() - 1)"
            before.append(f"{self.mask} = {mask}.reshape(-1, *[1] * ({text}.dim() - 1))")
            return [*before, f"torch.where({self.mask}, {text}, {other}).view({into.id}.shape)"]
        return [*before, f"torch.where({self.mask}.any(-1, keepdim=True), {text}, 0)"]


def _adds(e: ast.expr, name: str) -> bool:
    """Whether ``e`` is ``name.index_add(...)``."""
    match e:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=into), attr="index_add")):
            return into == name
    return False


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _added_at(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Attribute(attr="index_add_" | "index_add"), args=args, keywords=keywords):
            return next((k.value for k in keywords if k.arg == "index"), args[1] if len(args) > 1 else None)
        case ast.AugAssign(target=ast.Subscript(slice=at)):
            return at
    return None


def _reads_more(name: ast.Name, loop: ast.For) -> bool:
    """Whether ``name`` is read for more than its dtype and for adding to it."""
    for node in ast.walk(loop):
        match node:
            case ast.Attribute(value=value, attr="dtype" | "device" | "shape" | "index_add_" | "index_add"):
                if value is name:
                    return False
            case ast.AugAssign(target=ast.Subscript(value=value)) if value is name:
                return False
            case ast.Assign(targets=[ast.Subscript(value=value)]) if value is name:
                return False
    return isinstance(name.ctx, ast.Load)


def _skips(s: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(s, ast.If) and [type(t) for t in s.body] == [ast.Continue] and not s.orelse


def _target(target: ast.expr) -> str:
    text = ast.unparse(target)
    return text[1:-1] if isinstance(target, ast.Tuple) else text


def _fills(node: ast.AST, loop: ast.For) -> bool:
    """Whether ``node`` is ``out[name] = ...`` or ``out[name] += ...``, with a name that ``loop`` assigns."""
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=ast.Name(id=name))]):
            pass
        case ast.AugAssign(target=ast.Subscript(slice=ast.Name(id=name)), op=ast.Add()):
            pass
        case _:
            return False
    return any(isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == name for s in loop.body)


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _are_names(targets: list[ast.expr]) -> bool:
    return all(isinstance(t, ast.Name) for t in targets)


def _as_tuple(k: ast.keyword) -> bool:
    return k.arg == "as_tuple" and isinstance(k.value, ast.Constant) and k.value.value is True


def _short(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 60 else text[:57] + "..."


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
