"""How a function reads all that it joins to what it keeps: could places that are still empty be among it?

Keys and values that grow may stand in a buffer with room for more, of which an attention masks the places that are
empty. So it has to be known where all of them go: into an attention, or into scores that a softmax weighs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name
from patcher.facts.syntax.written import integer, is_none, is_whole, short
from patcher.facts.tables.wording import words

#: Methods, and functions of torch, that give what they are given: in another shape or dtype, or more of it.
_SHAPING = frozenset(
    "repeat_interleave expand expand_as reshape view transpose permute contiguous to unsqueeze flatten unflatten float "
    "type_as half bfloat16 clone detach swapaxes movedim squeeze t mT".split()
)
_ABOUT = frozenset("dtype device ndim dim is_cuda numel".split())
_PRODUCTS = frozenset("matmul bmm baddbmm einsum".split())
_SCORING = frozenset("masked_fill where add sub mul div clamp".split())
_MASKS = frozenset({"mask", "masks", "bias", "biases"})
_DROPPING = ("drop", "dropout")
JOINS = frozenset({"cat", "concat", "concatenate"})
#: What an earlier run has made of a join: a function of the project, which is given the two and the dimension.
JOINED = "_join_kept"
_DEEPEST = 6


@dataclass(frozen=True)
class Attention:
    """A place where what is kept is looked at: ``at`` is the attention's function, or the scores of a softmax.

    ``name``: what the kept keys are called there. ``before``: the statement above which they are still called so, where
    the name gets another value before ``at``.
    """

    at: ast.expr
    name: str
    scores: bool = False
    before: ast.stmt | None = None


@dataclass(frozen=True)
class Tail:
    """``mask[..., :n]``, where ``n`` is how much there is; of ``mask[:, n - t : n, :n]``, ``part`` is the middle.

    ``total``: that ``n``. ``size``: that ``t``. ``name``, ``before``: as an `Attention` has them.
    """

    at: ast.Subscript
    total: ast.expr
    name: str
    before: ast.stmt | None = None
    part: ast.Slice | None = None
    size: ast.expr | None = None


@dataclass(frozen=True)
class WholeReads:
    """``names``: the reads of all that is kept. ``reason``: why it cannot have empty places; "" when it can."""

    names: tuple[ast.Name, ...] = ()
    attentions: tuple[Attention, ...] = ()
    tails: tuple[Tail, ...] = ()
    reason: str = ""


class _UnknownError(Exception):
    """What is kept goes where nothing is known of it; the message says so."""


def whole_reads(joins: Iterable[ast.Call], flow: Flow, syntax: Syntax) -> WholeReads:
    """Where the results of ``joins``, all in the function of ``flow``, are read as a whole."""
    try:
        return _Reading(list(joins), flow, syntax).found()
    except _UnknownError as why:
        return WholeReads(reason=str(why))


class _Reading:
    def __init__(self, joins: list[ast.Call], flow: Flow, syntax: Syntax) -> None:
        self.joins, self.flow, self.syntax = joins, flow, syntax
        self.kept: dict[Definition, ast.Call] = {}
        self.names: list[ast.Name] = []
        self.derived: dict[Definition, tuple[str, frozenset[Definition]]] = {}
        self.attentions: list[Attention] = []
        self.tails: list[Tail] = []
        self.beside: list[ast.expr] = []

    def found(self) -> WholeReads:
        for join in self.joins:
            named = [d for d in self.flow.by_node.values() if d.how == "assign" and join in _results(d)]
            if not named:
                raise _UnknownError(f"`{short(join)}` gets no name in its function")
            if any(d.name in self.flow.captured | self.flow.shared for d in named):
                raise _UnknownError(f"`{named[0].name}` is also used by a function in this one")
            self.kept.update(dict.fromkeys(named, join))
        for definition in list(self.kept):
            self._whole(definition)
        if not self.attentions:
            raise _UnknownError("no attention is seen that reads it in the same function")
        for e in self.beside:
            if self._is_users_mask(e, 0):
                raise _UnknownError(f"`{short(e)}` may be a mask as long as what is kept")
        return WholeReads(tuple(dict.fromkeys(self.names)), tuple(self.attentions), tuple(self.tails))

    def _whole(self, kept: Definition) -> None:
        for name in self.flow.uses.get(kept, ()):
            if self._goes_back(name) or name in self.names:
                continue
            parent = self.syntax.parents[name]
            if isinstance(parent, ast.Compare) and all(is_none(c) for c in parent.comparators):
                continue
            self.names.append(name)
            self._follow(name, "keys", frozenset({kept}))

    def _goes_back(self, name: ast.Name) -> bool:
        """Whether ``name`` stands in what is stored or returned, as a whole or in a tuple, list or dict."""
        child: ast.AST = name
        for parent in self.syntax.ancestors(name):
            match parent:
                case ast.Tuple() | ast.List() | ast.Dict() | ast.IfExp() if child is not getattr(parent, "test", None):
                    child = parent
                case ast.Return():
                    return True
                case ast.Assign(targets=targets, value=value) if value is child:
                    return child is not name or all(isinstance(t, (ast.Subscript, ast.Attribute)) for t in targets)
                case ast.Call(func=ast.Attribute(attr="append"), args=[given]):
                    return given is child
                case ast.BinOp(op=ast.Add()) if isinstance(child, (ast.Tuple, ast.BinOp)):
                    child = parent
                case _:
                    return False
        return False

    # --- where it goes ------------------------------------------------------------------------------------------------

    def _follow(self, e: ast.expr, kind: str, source: frozenset[Definition]) -> None:
        """Follow ``e``, made of all that is kept: "keys" (values, scores), "weights" of a softmax, a "mask" of it."""
        child: ast.expr = e
        parent = self.syntax.parents[child]
        while not isinstance(parent, ast.stmt):
            if (beside := self._beside(child, parent)) is not None:
                self._made(beside, kind, source)
                return
            went = self._through(child, parent, kind, source)
            if went == "":
                return
            if not isinstance(parent, ast.keyword):
                kind = went
            if isinstance(parent, ast.Attribute):  # a method: on to its call
                parent = self.syntax.parents[parent]
            assert isinstance(parent, ast.expr | ast.keyword)
            child = parent  # type: ignore[assignment]
            parent = self.syntax.parents[child]
        match parent:
            case ast.Assign(targets=[ast.Name() as target]) | ast.AugAssign(target=ast.Name() as target):
                self._made(parent if isinstance(parent, ast.AugAssign) else target, kind, source)
            case _:
                raise _UnknownError(f"`{short(parent)}` hands on what was made of all of it")

    def _made(self, node: ast.AST, kind: str, source: frozenset[Definition]) -> None:
        """Go on with the name that gets a value at ``node``."""
        made = self.flow.by_node.get(node)
        if made is None or made in self.derived or made in self.kept:
            return
        if made.name in self.flow.captured | self.flow.shared:
            raise _UnknownError(f"`{made.name}` is also used by a function in this one")
        self.derived[made] = (kind, source)
        for name in self.flow.uses.get(made, ()):
            self._follow(name, kind, source)

    def _beside(self, child: ast.expr, parent: ast.AST) -> ast.expr | None:
        """The name that ``child``, one of several values that are bound at once, goes to."""
        match self.syntax.parents[parent]:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if child in values:
                target = targets[values.index(child)] if len(targets) == len(values) else None
                return target if isinstance(target, ast.Name) else None
        return None

    def _through(self, child: ast.expr, parent: ast.AST, kind: str, source: frozenset[Definition]) -> str:
        """What ``parent`` makes of ``child``: another "keys" or "weights", or "" for what does not depend on places."""
        match parent:
            case ast.keyword() | ast.IfExp():
                return kind
            case ast.Compare(comparators=[other]) if is_none(other):
                return ""
            case ast.Compare() | ast.UnaryOp() | ast.BinOp(op=ast.BitAnd() | ast.BitOr()) if kind == "mask":
                return kind
            case ast.Tuple() | ast.List() | ast.Dict():
                raise _UnknownError(f"`{short(parent)}` hands on what was made of all of it")
            case ast.Attribute(attr=attr) if attr in _ABOUT:
                return ""
            case ast.Attribute(attr="shape"):
                self._length(parent, source)
                return ""
            case ast.Attribute(attr=attr):
                call = self.syntax.parents[parent]
                if attr in ("T", "mT"):
                    raise _UnknownError(f"`{short(parent)}` is not followed")
                if not isinstance(call, ast.Call) or call.func is not parent:
                    raise _UnknownError(f"`{short(parent)}` is not followed")
                if attr == "size":
                    self._length(call, source)
                    return ""
                return self._called(attr, call, child, kind, source)
            case ast.Call() if child is not parent.func:
                return self._called(last_name(parent.func), parent, child, kind, source)
            case ast.BinOp(op=ast.MatMult()):
                return self._product([parent.left, parent.right], parent, kind)
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() | ast.Add() | ast.Sub(), right=right):
                self.beside.append(right if left is child else left)
                return kind
            case ast.Subscript(value=value, slice=index) if value is child:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if all(is_whole(p) or is_none(p) for p in parts):
                    return kind
                raise _UnknownError(f"`{short(parent)}` takes a part of it by its place")
        raise _UnknownError(f"`{short(parent)}` computes with all of it")

    def _called(self, name: str, call: ast.Call, child: ast.expr, kind: str, source: frozenset[Definition]) -> str:
        given = [*call.args, *(k.value for k in call.keywords)]
        if name == "scaled_dot_product_attention":
            self._attends(call, call.func, source, scores=False)
            return ""
        if name == "softmax":
            dim = next((k.value for k in call.keywords if k.arg == "dim"), None)
            method = isinstance(call.func, ast.Attribute) and call.func.value is child
            places = call.args if method else call.args[1:]
            dim = places[0] if dim is None and places else dim
            if integer(dim) != -1 or kind == "weights":
                raise _UnknownError(f"`{short(call)}` is not along the last dimension")
            self._attends(call, child, source, scores=True)
            return "weights"
        if name in _PRODUCTS:
            own = [call.func.value] if isinstance(call.func, ast.Attribute) and call.func.value is child else []
            return self._product([*own, *given], call, kind)
        if name in _SCORING:
            self.beside += [e for e in given if e is not child]
        if name in _SHAPING or name in _SCORING:
            scored = isinstance(call.func, ast.Attribute) and call.func.value is not child  # scores, by a mask
            if kind == "mask" and name in _SCORING and scored:
                return "keys"
            if kind == "weights" and name not in ("to", "type_as", "float", "half", "bfloat16"):
                raise _UnknownError(f"`{short(call)}` computes with the weights of all of it")
            return kind
        if any(word in name.lower() for word in _DROPPING) and kind == "weights":
            return kind
        if self._only_shapes(call):
            return kind
        raise _UnknownError(f"`{short(call)}` computes with all of it")

    def _only_shapes(self, call: ast.Call) -> bool:
        """Whether a function of this file is called that only puts what it is given into another shape."""
        if not isinstance(call.func, ast.Name):
            return False
        named = [f for f in self.syntax.functions if f.name == call.func.id and self.syntax.method_of(f) is not f]
        if len(named) != 1:
            return False
        inner = [n for s in named[0].body for n in ast.walk(s)]
        shaped = all(last_name(n.func) in _SHAPING | {"size"} for n in inner if isinstance(n, ast.Call))
        plain = (ast.Expr, ast.Assign, ast.If, ast.Return)
        reads = [n for n in inner if isinstance(n, ast.Subscript)]
        cut = [
            p for n in reads for p in (n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice])
            if not (is_whole(p) or is_none(p) or integer(p) is not None)
        ]  # fmt: skip
        taken = any(integer(n.slice) is not None and last_name(n.value) != "shape" for n in reads)
        return shaped and not cut and not taken and all(isinstance(s, plain) for s in inner if isinstance(s, ast.stmt))

    def _product(self, operands: list[ast.expr], product: ast.expr, kind: str) -> str:
        kinds = {kind, *(k for o in operands for k in self._kinds_in(o))}
        return "" if "weights" in kinds else "keys"

    def _kinds_in(self, e: ast.expr) -> Iterator[str]:
        """What ``e`` is made of; a softmax that stands in it gives weights."""
        for n in ast.walk(e):
            if isinstance(n, ast.Call) and last_name(n.func) == "softmax":
                yield "weights"
            if isinstance(n, ast.Name):
                for d in self.flow.reaching.get(n, ()):
                    if d in self.derived:
                        yield self.derived[d][0]
                    elif d.how == "assign" and d.value is not None:  # may not have been followed yet
                        called = [last_name(c.func) for c in ast.walk(d.value) if isinstance(c, ast.Call)]
                        if "softmax" in called or any(w in c.lower() for c in called for w in _DROPPING):
                            yield "weights"

    def _is_users_mask(self, e: ast.expr, depth: int) -> bool:
        """Whether ``e`` is made of a parameter that is called a mask or bias, and was not cut to what is kept."""
        cut = {n for tail in self.tails for n in ast.walk(tail.at)}
        for n in ast.walk(e):
            about = isinstance(around := self.syntax.parents.get(n), ast.Attribute) and around.attr in _ABOUT | {
                "shape"
            }
            for d in self.flow.reaching.get(n, ()) if isinstance(n, ast.Name) and not about and n not in cut else ():
                if d in self.kept or d in self.derived:
                    continue
                if d.how == "parameter" and _MASKS & set(words(d.name)):
                    return True
                if d.value is not None and depth < _DEEPEST and self._is_users_mask(d.value, depth + 1):
                    return True
        return False

    # --- its length ---------------------------------------------------------------------------------------------------

    def _length(self, e: ast.expr, source: frozenset[Definition]) -> None:
        """Look at what a size of it is used for: in comparisons, in sizes, as the end of a slice.

        What was joined is longer than what is new, and so is its buffer; a slice ends where it is masked anyway.
        """
        parent = self.syntax.parents[e]
        of, asked = (e.func, next(iter(e.args), None)) if isinstance(e, ast.Call) else (e, None)
        if isinstance(parent, ast.Subscript) and isinstance(e, ast.Attribute):
            asked = parent.slice
            e, parent = parent, self.syntax.parents[parent]
        if isinstance(of, ast.Attribute) and of.value in self.names and self._is_other(integer(asked), source):
            return
        targets = self._bound(e, parent)
        if targets is None:
            self._counted(e, source)
            return
        for t in targets:
            made = self.flow.by_node.get(t)
            for name in self.flow.uses.get(made, ()) if made is not None else ():
                self._counted(name, source)

    def _bound(self, e: ast.expr, parent: ast.AST) -> list[ast.expr] | None:
        """The targets that ``e``, or one of what it holds, is assigned to; None where it is not."""
        assign = self.syntax.parents[parent] if isinstance(parent, ast.Tuple) else parent
        if not isinstance(assign, ast.Assign):
            return None
        if isinstance(parent, ast.Tuple):
            whole = [t for t in assign.targets if isinstance(t, ast.Tuple) and len(t.elts) == len(parent.elts)]
            return [t.elts[parent.elts.index(e)] for t in whole] if len(whole) == len(assign.targets) else None
        return [t for target in assign.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]

    def _is_other(self, asked: int | None, source: frozenset[Definition]) -> bool:
        """Whether the dimension is another one than that which grows, however many there are: three at least."""
        dims = {dimension(self.kept[kept]) for kept in source}
        last = {1, 2} if any(self._is_turned(kept) for kept in source) else {1}
        return asked is not None and all(
            d is not None and (((d < 0) == (asked < 0) and d != asked) or (asked == -1 and d in last)) for d in dims
        )

    def _is_turned(self, kept: Definition) -> bool:
        """Whether the last two dimensions change places for the scores: the last is none of places, then."""
        for name in self.flow.uses.get(kept, ()):
            method = self.syntax.parents[name]
            match self.syntax.parents[method]:
                case ast.Call(func=ast.Attribute(attr="transpose" | "swapaxes"), args=[first, second]) as call:
                    if call.func is method and {integer(first), integer(second)} in ({-2, -1}, {2, 3}):
                        return True
        return False

    def _counted(self, e: ast.expr, source: frozenset[Definition]) -> None:
        parent = self.syntax.parents[e]
        match parent:
            case ast.Compare(left=left, comparators=[right]) if self._is_new(right if left is e else left, source):
                return
            case ast.Slice(lower=None, upper=upper, step=None) if upper is e and self._is_columns(parent, e, source):
                return
            case ast.Call(func=func) if last_name(func) in _SHAPING:
                return
            case ast.BinOp() | ast.Slice() if self._is_tail(parent, e):
                return
        raise _UnknownError(f"`{short(parent)}` counts what is kept")

    def _is_new(self, e: ast.expr, source: frozenset[Definition]) -> bool:
        """Whether ``e`` is 0 or 1, or a size of what the new part is made of: less than there is, with room too."""
        if isinstance(e, ast.Constant):
            return e.value in (0, 1)
        of = _sized(e)
        made = self.flow.reaching.get(e, ()) if isinstance(e, ast.Name) else ()
        sized = [of] if of is not None else [_sized(d.value) if d.value is not None else None for d in made]
        new = {r for kept in source for r in self._roots(joined(self.kept[kept])[1], 0)}
        return bool(sized) and all(o is not None and new & self._roots(o, 0) for o in sized)

    def _roots(self, e: ast.expr, depth: int) -> set[Definition]:
        """The parameters that ``e`` is computed with, but for the first one, and nothing that is kept."""
        found: set[Definition] = set()
        for n in ast.walk(e):
            for d in self.flow.reaching.get(n, ()) if isinstance(n, ast.Name) else ():
                if d in self.kept or d in self.derived:
                    return set()
                if d.how == "parameter":
                    found |= {d}
                elif d.value is not None and depth < _DEEPEST:
                    found |= self._roots(d.value, depth + 1)
        return {d for d in found if d.name not in ("self", "cls")}

    def _is_columns(self, part: ast.Slice, total: ast.expr, source: frozenset[Definition]) -> bool:
        """Go on with ``mask[..., :n]``, which has to be a mask; of its rows, `_is_tail` has been asked."""
        index = self.syntax.parents[part]
        at = self.syntax.parents[index] if isinstance(index, ast.Tuple) else index
        if not isinstance(at, ast.Subscript) or not isinstance(at.ctx, ast.Load):
            return False
        if isinstance(index, ast.Tuple) and index.elts[-1] is not part:
            return False
        if not any(t.at is at for t in self.tails):
            name, before = self._called_there(at, source)
            rows = _rows(index, total)
            self.tails.append(Tail(at, total, name, before, *(rows or (None, None))))
            self._follow(at, "mask", source)
        return True

    def _is_tail(self, parent: ast.BinOp | ast.Slice, e: ast.expr) -> bool:
        """Whether ``e`` is one of the two in ``n - t : n``, a slice of a mask whose last one is ``: n``."""
        part = self.syntax.parents[parent] if isinstance(parent, ast.BinOp) else parent
        index = self.syntax.parents[part]
        rows = _rows(index, e)
        return rows is not None and rows[0] is part and e in (getattr(rows[0].lower, "left", None), rows[0].upper)

    # --- where it is looked at ----------------------------------------------------------------------------------------

    def _attends(self, call: ast.Call, at: ast.expr, source: frozenset[Definition], scores: bool) -> None:
        if not any(a.at is at for a in self.attentions):
            name, before = self._called_there(call, source)
            self.attentions.append(Attention(at, name, scores, before))

    def _called_there(self, at: ast.expr, source: frozenset[Definition]) -> tuple[str, ast.stmt | None]:
        """What is kept is called so at ``at``; with a statement, it is so above that alone."""
        for kept in source:
            statement = self.syntax.statement_of(at)
            join = self.kept[kept]
            later = [d for d in self._rebound(kept) if getattr(d.node, "lineno", 0) <= statement.lineno]
            if not later:
                return kept.name, None
            first = self.syntax.statement_of(min(later, key=lambda d: getattr(d.node, "lineno", 0)).node)
            block = self.syntax.block_of(first)
            around = {id(a) for a in (statement, *self.syntax.ancestors(statement))}
            if any(id(s) in around for s in block[block.index(first) :]) and join.lineno < first.lineno:
                return kept.name, first
        raise _UnknownError(f"`{short(at)}` is not seen to be below what is kept")

    def _rebound(self, kept: Definition) -> list[Definition]:
        """What gives the name another value that is made of all that is kept, or of something else below the join."""
        join = self.syntax.statement_of(self.kept[kept])
        arms = (join, *self.syntax.ancestors(join))
        found = []
        for d in self.flow.by_node.values():
            if d.name != kept.name or d is kept or d in self.kept or d.how == "parameter":
                continue
            statement = self.syntax.statement_of(d.node)
            if statement.lineno < join.lineno or any(self._apart(arm, statement) for arm in arms):
                continue
            found.append(d)
        return found

    def _apart(self, arm: ast.AST, statement: ast.stmt) -> bool:
        """Whether ``statement`` stands in the other arm of an ``if`` that ``arm`` stands in."""
        test = self.syntax.parents.get(arm)
        if not isinstance(test, ast.If) or not isinstance(arm, ast.stmt):
            return False
        other = test.orelse if arm in test.body else test.body if arm in test.orelse else []
        return any(s is statement for o in other for s in ast.walk(o))


def _rows(index: ast.AST, total: ast.expr) -> tuple[ast.Slice, ast.expr] | None:
    """``n - t : n`` and ``t``, where the last part of ``index`` is ``: n``, and ``n`` is written as ``total``."""
    match index:
        case ast.Tuple(elts=[*others, ast.Slice(lower=None, upper=ast.expr() as end, step=None)]):
            for part in others:
                match part:
                    case ast.Slice(
                        lower=ast.BinOp(left=left, op=ast.Sub(), right=size), upper=ast.expr() as upper, step=None
                    ):
                        if {ast.unparse(n) for n in (left, upper, end, total)} == {ast.unparse(total)}:
                            return part, size
    return None


def _sized(e: ast.expr) -> ast.expr | None:
    """What ``e`` is a size of, or all sizes."""
    match e:
        case ast.Subscript(value=ast.Attribute(value=of, attr="shape")) | ast.Attribute(value=of, attr="shape"):
            return of
        case ast.Call(func=ast.Attribute(value=of, attr="size")):
            return of
        case ast.Tuple(elts=[first, *_]):
            return _sized(first)
    return None


def _results(d: Definition) -> list[ast.expr]:
    """The expressions that ``d`` may bind as they are."""
    value, path = d.part
    found, todo = [], [value] if value is not None and not path else []
    while todo:
        e = todo.pop()
        found.append(e)
        if isinstance(e, ast.IfExp):
            todo += [e.body, e.orelse]
    return found


def grown_dims(function: FunctionNode, calls: Iterable[ast.Call], syntax: Syntax) -> frozenset[int]:
    """The dimensions along which ``function`` joins new tensors to parts of its parameters, all of which is followed.

    ``calls``: those in ``function``. Only a first part that comes out of a parameter counts.
    """
    calls = list(calls)
    made = [integer(c.args[2]) for c in calls if last_name(c.func) == JOINED and len(c.args) == 3]
    if made:
        return frozenset(dim for dim in made if dim is not None)
    joins = [c for c in calls if last_name(c.func) in JOINS and joined(c) and dimension(c) is not None]
    joins = [c for c in joins if (syntax.qualified(c.func) or "").startswith("torch.")]
    if not joins:
        return frozenset()
    flow = Flow(function)
    joins = [c for c in joins if _is_given(joined(c)[0], flow)]
    if not joins or whole_reads(joins, flow, syntax).reason:
        return frozenset()
    return frozenset(dim for c in joins if (dim := dimension(c)) is not None)


def joined(call: ast.Call) -> list[ast.expr]:
    """The two tensors that ``call`` joins, when they are written out; else none."""
    given = call.args[0] if call.args else None
    return list(given.elts) if isinstance(given, ast.Tuple | ast.List) and len(given.elts) == 2 else []


def dimension(call: ast.Call) -> int | None:
    """The dimension that a join is made along, when it is written as a number."""
    named = next((k.value for k in call.keywords if k.arg in ("dim", "axis")), None)
    return integer(call.args[1] if len(call.args) > 1 else named)


def _is_given(e: ast.expr, flow: Flow, depth: int = 0) -> bool:
    """Whether ``e`` is a part of a parameter of the function: an item, or what it is unpacked to."""
    if depth > _DEEPEST:
        return False
    match e:
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value, attr="get")):
            return _is_given(value, flow, depth + 1) or (isinstance(value, ast.Name) and _is_parameter(value, flow))
        case ast.Name():
            for d in flow.reaching.get(e, ()):
                made, path = d.part
                if d.how == "assign" and made is not None:
                    if _is_given(made, flow, depth + 1):
                        return True
                    if path and isinstance(made, ast.Name) and _is_parameter(made, flow):
                        return True
                if d.how == "iteration" and d.value is not None:
                    return any(isinstance(n, ast.Name) and _is_parameter(n, flow) for n in ast.walk(d.value))
    return False


def _is_parameter(name: ast.Name, flow: Flow) -> bool:
    return any(d.how == "parameter" for d in flow.reaching.get(name, ()))
