"""A loop that picks the rows of one group after the other, and the same sums over all rows: "experts" in most models.

Each round of such a loop picks rows by index (``places, rows = torch.where(mask[e])``), computes something of each row,
weighs it, and adds it to the rows of a result. Over all rows, with a zero where a row is not picked, the sums are the
same and every shape is known.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.groups.row_values import FIXED, GroupMask, Held, Picked, Refused, RowValues, Sort
from patcher.facts.masks.listed import listed
from patcher.facts.syntax.tree import FunctionNode, dotted, walk
from patcher.facts.syntax.written import is_stored, short
from patcher.facts.tables import torch_api as api
from rules.fc404_nonzero_loop.group_counts import GroupCounts
from rules.fc404_nonzero_loop.group_hits import GroupHits, Hits

_CHANGES = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


@dataclass(frozen=True)
class Sum:
    """What a statement does to the rows of ``into``: it adds ``source``, or, for "copy", puts it there.

    ``how``: "add", "copy", or "anew", which makes another tensor. ``mask``: of rows; None where they have numbers.
    """

    into: ast.Name
    source: ast.expr
    how: str = "add"
    mask: ast.Name | None = None


@dataclass(frozen=True)
class RowLoop:
    """The loop, and what its ``turns`` are over all rows.

    ``chosen``: the expression that gives the groups and reads tensor data, or the loop's own iterable. ``whole``: the
    mask whose groups it visits; None where it goes on over its own iterable. ``absent``: what there may be fewer of
    than groups: rows for those are an error, as they were. ``doubtful``: ``whole`` is taken to have no negative
    element. ``counted``: what says how many rows each group has, when nothing but the loop reads it.
    """

    chosen: ast.expr
    turns: Turns
    whole: ast.Name | None = None
    absent: ast.expr | None = None
    doubtful: bool = False
    counted: ast.expr | None = None


class RowLoops(Analysis):
    """Finds such loops."""

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

    def of(self, loop: ast.For) -> RowLoop | str | None:
        """``loop`` over all rows; why that cannot be, or None for a loop of another kind."""
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
            return self._static(loop, hits, picks)
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
        found = listed(value, self.syntax)
        return found[0] if found is not None and found[1] else None

    def _static(self, loop: ast.For, hits: Hits | None, picks: list[ast.AST]) -> RowLoop:
        function = self.syntax.function_of(loop)
        if function is None or loop.orelse:
            raise Refused("the loop has an `else`")
        if len(picks) > 1:
            raise Refused("the loop picks rows more than once")
        if hits is None and not self.hits.is_plain(loop.iter):
            raise Refused(f"which groups `{short(loop.iter)}` gives is not known")
        self._stays_inside(loop, function)
        turns = Turns(self, loop, hits, picks[0] if picks else None)
        turns.block(loop.body)
        if not turns.sums:
            raise Refused("the loop adds no weighted rows to a result")
        if hits is None:
            counted = self.hits.read_in(turns.counted, loop) if turns.counted is not None else None
            return RowLoop(loop.iter, turns, counted=counted)
        whole = turns.mask.of if turns.mask is not None and turns.mask.of_group else None
        if not isinstance(whole, ast.Name) or not self.hits.same(whole, hits.mask):
            raise Refused(f"the groups that `{short(hits.chosen)}` leaves out may have rows")
        absent = self.counts.short(loop, hits.count, turns.values.parts)
        if absent is not None:
            bound = {n.id for s in loop.body for n in ast.walk(s) if is_stored(n)}
            if not self.counts.is_tensor(absent) or bound & self.syntax.names_in(absent):
                raise Refused(f"`{short(absent)}` may have fewer parts than there are groups")
        if not self.syntax.is_builtin(ast.Name("range", ast.Load())):
            raise Refused("`range` is another name here")
        return RowLoop(hits.chosen, turns, hits.mask, absent, hits.doubtful)

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


class Turns:
    """What the statements of one loop are over all rows.

    ``pick``: the one that picks rows, by ``mask``, with places first when ``transposed``. ``values``: what is picked
    where. ``gone``: those that have no part in it; ``opened``: tests that always hold; ``sums``: what is added up.
    """

    def __init__(self, loops: RowLoops, loop: ast.For, hits: Hits | None, pick: ast.AST | None) -> None:
        self.loops, self.loop, self.hits = loops, loop, hits
        self.values = RowValues(loops.facts)
        self.pick: ast.stmt | None = None
        self.mask: GroupMask | None = None
        self.gone: set[ast.stmt] = set()
        self.opened: set[ast.stmt] = set()
        self.sums: dict[ast.stmt, Sum] = {}
        self.counted: ast.Subscript | None = None
        self.rows, self.places, self.transposed, self._picking = "", "", False, pick
        if isinstance(pick, ast.Assign):
            names = self.loops.syntax.names_in(pick.targets[0])
            at = {a.id for n in ast.walk(loop) if isinstance(a := _added_at(n), ast.Name) and a.id in names}
            first, second = (e.id for e in pick.targets[0].elts)  # type: ignore[attr-defined]
            if not at:
                raise Refused("the loop adds no weighted rows to a result")
            self.rows, self.places = (first, second) if first in at else (second, first)
            self.transposed = self.rows == second
        if hits is not None:
            if not isinstance(loop.target, ast.Name):
                raise Refused("the loop takes its groups apart")
            self.values.index(loop.target.id, hits.one_element)

    def block(self, body: list[ast.stmt]) -> None:
        """All of ``body``. Raises Refused where it cannot be told what it is over all rows."""
        for i, s in enumerate(body):
            empty = self.values.emptiness(s.test) if isinstance(s, ast.If) else None
            if isinstance(s, ast.If) and _ends(s.body) and not s.orelse:
                counted = self.loops.hits.none_of(s.test)
                self.counted = counted or self.counted
                if counted is not None or empty:
                    self.gone.add(s)
                    continue
            if isinstance(s, ast.If) and empty is not None:
                if empty or not (not s.orelse or _ends(s.orelse)):
                    raise Refused(f"what happens without rows (`{short(s.test)}`) is more than nothing")
                self.opened.add(s)
                self.block(s.body)
            else:
                self.statement(s, first=i == 0 and body is self.loop.body)

    def statement(self, s: ast.stmt, first: bool) -> None:
        """One statement; ``first``: it is the first one of the loop."""
        match s:
            case _ if s is self._picking:
                self.picked(s)
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))], body=[inner]) if (
                inner is self._picking and self.loops.syntax.qualified(func) in api.GRAD_OFF
            ):
                self.picked(s)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                self.gone.add(s)
            case ast.Continue():
                pass
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(test, body, orelse)
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                old = self.values.of(target)
                if old.sort is Sort.FIXED:
                    raise Refused(f"`{target.id}` goes from one round into the next")
                if not isinstance(op, _CHANGES) or old.raw:
                    raise Refused(f"`{short(s)}` changes rows in place")
                self.values.bind(target.id, self.values.binary(s, old, op, self.values.of(value)))
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value) if not self.sum_of(s):
                self.bind(s, target, value, first)
            case _ if not self.sum_of(s):
                raise Refused(f"`{short(s)}` is more than a computation on rows")

    def bind(self, s: ast.stmt, target: ast.Name | ast.Tuple, value: ast.expr, first: bool) -> None:
        """Names get a value, which may be the number of the group, or a mask."""
        values = self.values
        elements = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [t.id for t in elements if isinstance(t, ast.Name)]
        if len(names) != len(elements):
            raise Refused(f"`{short(s)}` is more than a computation on rows")
        if isinstance(target, ast.Name) and self.hits is not None and values.is_index(value):
            values.index(target.id, one_element=False)
            values.group = target.id if first else values.group
            values.picked[value] = Picked()
            if target.id == values.group:
                self.gone.add(s)
            return
        if isinstance(target, ast.Name) and self._picking is None and values.is_mask(value):
            values.bind_mask(target.id, value)
            return
        if isinstance(target, ast.Name):
            several = [values.of(value)]
        elif isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            several = [values.of(v) for v in value.elts]
        else:
            held = values.of(value)
            if held.sort not in (Sort.PARTS, Sort.FIXED):
                raise Refused(f"`{short(value)}` is not known to keep rows apart")
            several = [Held(Sort.ROWS, held.raw) if held.sort is Sort.PARTS else FIXED] * len(names)
        for name, held in zip(names, several, strict=True):
            values.bind(name, held)

    def branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """A branch that has nothing to do with rows stays one."""
        held = self.values.of(test)
        if held.sort is not Sort.FIXED or self.loops.inference.of(test).is_tensor:
            raise Refused(f"`{short(test)}` reads rows")
        before = self.values.known()
        self.block(body)
        after = self.values.known()
        self.values.restore(before)
        self.block(orelse)
        ends = [bool(b) and isinstance(b[-1], ast.Continue) for b in (body, orelse)]
        if ends[1] and not ends[0]:
            self.values.restore(after)
        elif not any(ends):
            self.values.meet(after)

    def picked(self, s: ast.stmt) -> None:
        """``s`` is, or holds, the statement that picks."""
        mask = self.loops._picked(self._picking) if self._picking is not None else None
        assert mask is not None
        self.pick, self.mask = s, self.values.group_mask(mask)
        self.values.pick(self.rows, self.places)
        if self.counted is not None and not self.loops.hits.counts(self.counted, mask):
            raise Refused(f"`{short(self.counted)}` does not count the rows of `{short(mask)}`")

    # --- what is added up -------------------------------------------------------------------------------------------

    def sum_of(self, s: ast.stmt) -> bool:
        """Whether ``s`` adds to rows of a result, or puts rows there; it is kept in ``sums`` then."""
        match s:
            case ast.AugAssign(target=ast.Subscript(value=into, slice=ast.Name(id=at) as mask), op=ast.Add()):
                if at == self.rows:
                    return self.add(s, into, s.value)
                return self.values.is_mask(mask) and self.add(s, into, s.value, "add", mask)
            case ast.Assign(targets=[ast.Subscript(value=into, slice=ast.Name() as mask)]):
                return self.values.is_mask(mask) and self.add(s, into, s.value, "copy", mask)
            case ast.Assign(targets=[target], value=ast.Call() as call):
                into = call.func.value if isinstance(call.func, ast.Attribute) else call.func
                return dotted(target) == dotted(into) is not None and self._indexed(s, call)
            case ast.Expr(value=ast.Call() as call):
                return self._indexed(s, call)
        return False

    def _indexed(self, s: ast.stmt, e: ast.Call) -> bool:
        """``into.index_add_(0, rows, source)``."""
        match e.func:
            case ast.Attribute(value=ast.Name() as into, attr="index_add_" | "index_add" as how):
                pass
            case _:
                return False
        given = dict(zip(("dim", "index", "source"), e.args, strict=False))
        given |= {k.arg: k.value for k in e.keywords if k.arg is not None}
        dim, at, source = given.get("dim"), given.get("index"), given.get("source")
        if len(given) != 3 or not isinstance(dim, ast.Constant) or dim.value != 0 or source is None:
            raise Refused(f"`{short(e)}` adds in a way that is not known")
        if not isinstance(at, ast.Name) or at.id != self.rows:
            raise Refused(f"`{short(e)}` adds at other rows")
        return self.add(s, into, source, "anew" if how == "index_add" else "add")

    def add(self, s: ast.stmt, into: ast.expr, source: ast.expr, how: str = "add", at: ast.Name | None = None) -> bool:
        """``s`` changes rows of ``into`` by ``source``; see `Sum`."""
        if self.values.of(into).sort is not Sort.FIXED or not isinstance(into, ast.Name):
            raise Refused(f"`{short(into)}` is made in the loop")
        if any(isinstance(n, ast.Name) and n.id == into.id and _reads_more(n, self.loop) for n in ast.walk(self.loop)):
            raise Refused(f"the loop reads `{into.id}`, which it adds to")
        sort = self.values.of(source).sort
        if sort is not Sort.WEIGHED and not (at is not None and sort is Sort.ROWS):
            raise Refused(f"`{short(source)}` is not known to be rows with their weights")
        if at is not None:
            self.values.use_mask(at.id)
        self.sums[s] = Sum(into, source, how, at)
        return True


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


def _ends(body: list[ast.stmt]) -> bool:
    """Whether ``body`` does nothing but go on with the next round."""
    return [type(s) for s in body] == [ast.Continue]


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
