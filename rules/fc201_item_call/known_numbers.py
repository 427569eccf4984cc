"""Integers that a function puts into a tensor and reads out again, though it knew them all along."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.tables.torch_api import INT64
from patcher.facts.values.sizes import Sizes

_TYPED = frozenset({"torch.IntTensor", "torch.LongTensor"})
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"})
_WHOLE = INT64 | {"torch.int32", "torch.int"}
#: What becomes of all elements -> how Python says it.
_TOGETHER = {"max": "max", "min": "min", "amax": "max", "amin": "min", "sum": "sum", "prod": "prod"}
#: What the largest of nothing raises, asked of a tensor and of Python.
_OF_NOTHING = ("RuntimeError", "ValueError")
#: What carries the same numbers on.
_CARRIED = frozenset({"cpu", "detach", "clone", "contiguous", "cuda"})


@dataclass(frozen=True)
class Known:
    """An integer: all of ``parts`` joined as ``how`` says.

    ``how``: "part" (there is one), "whole" (one, through ``int()``), "max", "min", "sum", "prod", or "shape" (the
    product of the sizes that the one part is). ``each``: the parts are one expression, a target and a list, for
    ``how(expression for target in list)``.
    """

    how: str
    parts: tuple[ast.expr, ...]
    each: bool = False

    @property
    def builtin(self) -> str | None:
        """The function of Python's own that the code of it calls."""
        known = {"whole": "int", "max": "max", "min": "min", "sum": "sum" if self.each else None}
        return known.get(self.how)

    @property
    def template(self) -> str:
        """The code of it, with a hole for each of the parts."""
        holes = [f"{{{i}}}" for i in range(len(self.parts))]
        if self.each:
            return f"{self.how}({{0}} for {{1}} in {{2}})"
        match self.how:
            case "whole":
                return "int({0})"
            case "shape":
                return "{0}.numel()"
            case "sum" | "prod":
                return (" + " if self.how == "sum" else " * ").join(holes)
            case "max" | "min" if len(holes) > 1:
                return f"{self.how}({', '.join(holes)})"
        return "{0}"


@dataclass(frozen=True)
class _Made:
    """Elements of a tensor: ``exprs``, the sizes that ``shape`` is, or those of ``listed``.

    ``flat``: it has no dimension.
    """

    exprs: tuple[ast.expr, ...]
    flat: bool
    whole: bool
    shape: ast.expr | None = None
    listed: ast.ListComp | None = None


class KnownNumbers(Analysis):
    """Which elements of tensors the code of one module knows without asking the tensor."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sizes = facts.ask(Sizes)
        self._unchanged = facts.ask(Unchanged)

    def scalar(self, e: ast.expr) -> Known | None:
        """The integer that ``e``, a tensor of one element, holds; None when it is not known.

        It may be the largest of nothing: an error as it is of the tensor, of another type, that nobody takes.
        """
        known = self._scalar(e)
        if known is not None and known.each:
            taken = self.facts.ask(Caught).why(self.syntax.statement_of(e), _OF_NOTHING, around=True)
            return known if taken is None else None
        if known is None:
            return None
        return known if all(self._steady(p, e) for p in known.parts) else None

    def _scalar(self, e: ast.expr) -> Known | None:
        made = self._made(e, e)
        if made is not None and len(made.exprs) == 1:
            return Known("whole" if made.whole else "part", made.exprs)
        match e:
            case ast.Subscript(value=base, slice=index):
                return self._element(self._made(base, e), index)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if attr in _TOGETHER:
                return self._together(self._made(base, e), _TOGETHER[attr])
            case ast.Call(args=[base], keywords=[]):
                owner, _, last = (self.syntax.qualified(e.func) or "").rpartition(".")
                if owner == "torch" and last in _TOGETHER:
                    return self._together(self._made(base, e), _TOGETHER[last])
        return None

    def _element(self, made: _Made | None, index: ast.expr) -> Known | None:
        sign = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        number = index.operand if isinstance(index, ast.UnaryOp) and sign else index
        if made is None or made.flat or not made.exprs or not isinstance(number, ast.Constant):
            return None
        at = number.value
        if type(at) is not int or not -len(made.exprs) <= (at := -at if sign else at) < len(made.exprs):
            return None
        return Known("whole" if made.whole else "part", (made.exprs[at],))

    def _together(self, made: _Made | None, how: str) -> Known | None:
        if made is None or made.flat:
            return None
        if made.shape is not None:
            return Known("shape", (made.shape,)) if how == "prod" else None
        if made.listed is not None:
            (generator,) = made.listed.generators
            parts = (made.listed.elt, generator.target, generator.iter)
            return Known(how, parts, each=True) if how in ("max", "min") else None
        if how in ("sum", "prod") and not all(map(self.sizes.is_count, made.exprs)):
            return None  # of large numbers, a tensor's wraps round
        return Known(how, made.exprs) if made.exprs and not made.whole else None

    def _made(self, e: ast.expr, asked: ast.expr, depth: int = 6) -> _Made | None:
        """The elements of the tensor ``e``, when the code that makes it is in sight; ``asked`` does not change it."""
        if depth == 0:
            return None
        match e:
            case ast.Name():
                d = self._only(e)
                if d is None or d.value is None:
                    return None
                later = self._evaluated_later(asked)
                if self._unchanged.why_changed(e, self.syntax.statement_of(d.node), asked, ignoring=later):
                    return None
                return self._made(d.value, asked, depth - 1)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if attr in _CARRIED:
                return self._made(base, asked, depth - 1)
            case ast.Call(args=[content], keywords=keywords):
                what = self.syntax.qualified(e.func)
                given = {k.arg: k.value for k in keywords}
                dtype = given.pop("dtype", None)
                if set(given) - {"device"} or (dtype is not None and self.syntax.qualified(dtype) not in _WHOLE):
                    return None
                fresh = isinstance(e.func, ast.Attribute) and e.func.attr == "new_tensor" and dtype is not None
                made: _Made | None = None
                if what in _MAKERS and isinstance(content, ast.ListComp):
                    made = _Made((), False, False, listed=content) if self._goes_again(content, e, asked) else None
                elif what in _MAKERS or fresh or (what in _TYPED and isinstance(content, (ast.List, ast.Tuple))):
                    made = self._content(content, dtype is not None or what in _TYPED)
                # a number that does not fit is an error, as long as the tensor is made
                stays = all(n is not e for n in ast.walk(asked))
                narrow = what == "torch.IntTensor" or (dtype is not None and self.syntax.qualified(dtype) not in INT64)
                return made if made is not None and (stays or (not narrow and self._fits(made))) else None
        return None

    def _fits(self, made: _Made) -> bool:
        """Whether an int64 can hold all elements: sizes, what is given, and what one operator makes of sizes."""
        elements = made.exprs if made.listed is None else (made.listed.elt,)
        return made.shape is not None or all(map(self._is_small, elements))

    def _is_small(self, e: ast.expr) -> bool:
        match e:
            case ast.Constant(value=int() as value):
                return value.bit_length() < 64
            case ast.Attribute() | ast.BinOp(left=ast.Attribute(), op=ast.FloorDiv()):
                return True
            case ast.BinOp(left=left, op=ast.FloorDiv()):
                return self._is_one_count(left)
            case ast.BinOp(op=ast.Mod(), right=right):
                return self._is_one_count(right)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                return self._is_one_count(left) and self._is_one_count(right)
            case ast.Name() if not self.sizes.is_count(e):
                found = self.inference.definitions(e)
                return bool(found) and all(d.how == "parameter" for d in found)
        return self._is_one_count(e)

    def _is_one_count(self, e: ast.expr) -> bool:
        """Whether ``e`` is a size, not worked out of several: it takes 32 bits, so that two may be multiplied."""
        constant = isinstance(e, ast.Constant) and isinstance(e.value, int) and e.value.bit_length() > 32
        return self.sizes.is_count(e) and not constant and not isinstance(e, (ast.BinOp, ast.IfExp))

    def _evaluated_later(self, asked: ast.expr) -> list[ast.expr]:
        """The message of the assertion in the test of which ``asked`` stands: it is not put together before."""
        statement = self.syntax.statement_of(asked)
        if not isinstance(statement, ast.Assert) or statement.msg is None:
            return []
        return [] if asked in ast.walk(statement.msg) or self._in_loop(statement) else [statement.msg]

    def _in_loop(self, statement: ast.stmt) -> bool:
        return any(isinstance(n, (ast.For, ast.AsyncFor, ast.While)) for n in self.syntax.ancestors(statement))

    def _content(self, content: ast.expr, whole: bool) -> _Made | None:
        if self.sizes.is_shape(content):  # of nothing, the product is a float
            return _Made((), False, False, content) if whole or self._has_sizes(content) else None
        flat = not isinstance(content, (ast.List, ast.Tuple))
        elements = content.elts if isinstance(content, (ast.List, ast.Tuple)) else [content]
        # True is an int as well, for all that annotations say
        sure = all(self.sizes.is_count(x) if whole else self.sizes.is_integer(x) for x in elements)
        numbers = all(map(self._is_number, elements))
        if not (sure or (whole and numbers)) or any(map(self._unchanged.why_impure, elements)):
            return None
        return _Made(tuple(elements), flat, not sure)

    def _is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number. Of an attribute its class alone is asked: ``int()`` takes what others make it."""
        own = self.inference.instance_attribute(e)
        value = self.inference.of(e) if own is None else self.inference.stored(*own)
        return value.is_number and not value.data

    def _goes_again(self, listed: ast.ListComp, made: ast.expr, asked: ast.expr) -> bool:
        """Whether ``listed``, integers, gives the same at ``asked``, right below the tensor that is made of it.

        What it goes through is a list: an iterator would be used up.
        """
        match listed.generators:
            case [ast.comprehension(target=ast.Name() as target, iter=ast.Name() as source, ifs=[], is_async=0)]:
                pass
            case _:
                return False
        d = self._only(source)
        if d is None or not isinstance(d.value, (ast.ListComp, ast.List)) or target.id == source.id:
            return False
        of_tensor = _is_size_of(listed.elt, target.id) and self._holds_tensors(source)
        if not of_tensor and (not self.sizes.is_count(listed.elt) or self._unchanged.why_impure(listed.elt)):
            return False
        above, here = self.syntax.statement_of(made), self.syntax.statement_of(asked)
        block = self.syntax.block_of(above)
        return above is here or (here in block and block.index(here) == block.index(above) + 1)

    def _holds_tensors(self, source: ast.Name) -> bool:
        """Whether something that only a tensor has is used on what the list ``source`` holds (second presumption)."""
        function = self.syntax.function_of(source)
        bound = self.inference.definitions(source)
        for part in self.syntax.own(function, ast.ListComp) if function is not None else ():
            match part:
                case ast.ListComp(generators=[ast.comprehension(target=ast.Name(id=name), iter=ast.Name() as other)]):
                    if other.id == source.id and self.inference.definitions(other) == bound:
                        used = [n for n in ast.walk(part.elt) if isinstance(n, ast.Attribute)]
                        mine = {n.attr for n in used if isinstance(n.value, ast.Name) and n.value.id == name}
                        if mine & self.inference.tensor_names:
                            return True
        return False

    def _has_sizes(self, shape: ast.expr) -> bool:
        """Whether the tensor that ``shape`` is the shape of is known to have a dimension, or has been asked for one."""
        match shape:
            case ast.Attribute(value=base) | ast.Call(func=ast.Attribute(value=base)):
                rank = self.inference.of(base).rank
                return (rank is not None and rank.offset > 0) or self._was_asked(shape, base)
        return False

    def _was_asked(self, shape: ast.expr, base: ast.expr) -> bool:
        """Whether one size was taken from ``shape``, which ``base`` has, in a statement above that always runs."""
        said = ast.dump(shape)
        around = [
            n for n in (self.syntax.statement_of(shape), *self.syntax.ancestors(shape)) if isinstance(n, ast.stmt)
        ]
        for statement in around:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                return False
            block = self.syntax.block_of(statement)
            for above in block[: block.index(statement)]:
                match above:
                    case ast.Assign(value=ast.Subscript(value=held, slice=ast.Constant(value=int())) as taken):
                        if ast.dump(held) == said and not self._unchanged.why_changed(base, taken, shape):
                            return True
        return False

    def _only(self, name: ast.Name) -> Definition | None:
        found = self.inference.definitions(name)
        d = next(iter(found)) if len(found) == 1 else None
        return d if d is not None and d.how == "assign" and not d.path else None

    def _steady(self, part: ast.expr, at: ast.expr) -> bool:
        """Whether ``part`` has the value that it had where the tensor was made, at ``at`` as well."""
        return not self._unchanged.why_changed(part, part, at, ignoring=self._evaluated_later(at))


def _is_size_of(e: ast.expr, name: str) -> bool:
    """Whether ``e`` is one size of what ``name`` holds, as a tensor has it."""
    match e:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=held), attr="shape"), slice=ast.Constant()):
            return held == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="size"), args=[ast.Constant()], keywords=[]):
            return held == name
    return False
