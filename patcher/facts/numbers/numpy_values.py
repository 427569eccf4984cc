"""Which expressions are numbers or arrays of NumPy, by what is said of them: enough for a report, never for a fix.

Numbers, sizes and whatever is not known may be what NumPy computes them from: that decides nothing but whether Dynamo
still knows the value (`patcher.facts.tables.numpy_api`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.tables.numpy_api import (
    ARRAYS,
    BY_ELEMENT,
    CONVERTING,
    ENDED_AT,
    NOT_READ,
    REDUCING,
    REDUCING_METHODS,
    SAME_ATTRIBUTES,
    SAME_METHODS,
    TRUE_OR_NOT,
    WHOLE,
    WHOLE_TYPES,
    Traced,
)
from patcher.facts.values.callees import Callees
from patcher.facts.values.sizes import Sizes

_FOLDED = frozenset({Traced.FLOAT, Traced.INT})
_ALONG = frozenset({"axis", "keepdims", "out"})


class NumpyValues(Analysis):
    """Those of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._open: set[tuple[ast.ClassDef, str]] = set()
        self._pending: set[Definition] = set()
        self._known: dict[Definition, Traced | None] = {}
        self._any = any(what.partition(".")[0] == "numpy" for _, what, _ in self.syntax.all_imports) or any(
            a.attr == "numpy" for a in self.syntax.by_type[ast.Attribute]
        )

    def ends(self, e: ast.expr, way: str) -> bool:
        """Whether ``e`` is of NumPy, and the graph breaks where it is asked for its number in this way."""
        return self._any and self.of(e) in ENDED_AT[way]

    def of(self, e: ast.expr) -> Traced | None:
        """What ``e`` is while Dynamo traces; None where it is nothing of NumPy's, or may be something else."""
        match e:
            case ast.Name():
                return _one_of([self._bound(d) for d in self.inference.definitions(e) if d not in self._pending])
            case ast.Attribute(value=value, attr=attr):
                if self.inference.instance_attribute(e) is not None:
                    return self._kept(e)
                return self.of(value) if attr in SAME_ATTRIBUTES else None
            case ast.Subscript(value=value, slice=index):
                return self._picked(self.of(value), index)
            case ast.BinOp(left=left, op=op, right=right):
                return self._together([left, right], not isinstance(op, ast.Div))
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                return self._together([left, *e.comparators], True)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return self.of(operand)
            case ast.IfExp(body=body, orelse=orelse):
                return _one_of([self.of(body), self.of(orelse)])
            case ast.Call():
                return self._called(e)
        return None

    def _bound(self, d: Definition) -> Traced | None:
        if d not in self._known:
            self._pending.add(d)
            self._known[d] = self._binds(d)
            self._pending.discard(d)
        return self._known[d]

    def _binds(self, d: Definition) -> Traced | None:
        if d.how == "parameter":
            return _one_of([self.of(given) for given in self.facts.ask(Callees).given(d, seen=True)])
        value, path = d.part
        if (
            d.how == "iteration"
            and isinstance(value, ast.Call)
            and self.syntax.builtin(value) == "zip"
            and len(path) == 1
        ):
            value, path = (value.args[path[0]], ()) if path[0] < len(value.args) else (None, ())
        if value is None or d.how not in ("assign", "iteration"):
            return None
        held = self.of(value)
        if path or d.how == "iteration":
            return Traced.MADE if held is Traced.ARRAY else None
        return held

    def _kept(self, e: ast.Attribute) -> Traced | None:
        """What a module keeps, for whom all its methods store something of NumPy's."""
        own = self.inference.instance_attribute(e)
        stores = self.inference.class_facts(own[0]).stores.get(own[1], []) if own is not None else []
        if own is None or own in self._open or any(s.how != "assign" or s.value is None for s in stores):
            return None
        self._open.add(own)
        try:
            values = [s.value for s in stores if s.value is not None]
            return _one_of([self._stored(v) for v in values if not self._reads(v, own)])
        finally:
            self._open.discard(own)

    def _reads(self, value: ast.expr, own: tuple[ast.ClassDef, str]) -> bool:
        """Whether ``value`` is made of what the same attribute held before."""
        return any(self.inference.instance_attribute(n) == own for n in ast.walk(value))

    def _stored(self, value: ast.expr) -> Traced | None:
        held = None if isinstance(value, ast.Attribute) else self.of(value)
        if held is None or held is Traced.ARRAY:
            return held
        name = (self.syntax.qualified(value.func) or "") if isinstance(value, ast.Call) else ""
        unread = name.removeprefix("numpy.") in NOT_READ or isinstance(value, ast.Compare)
        return Traced.MADE if unread else Traced.KEPT

    def _picked(self, held: Traced | None, index: ast.expr) -> Traced | None:
        if held is not Traced.ARRAY:
            return None
        several = isinstance(index, (ast.Slice, ast.Tuple, ast.List)) or self._is_several(index)
        return Traced.ARRAY if several else Traced.MADE

    def _is_several(self, index: ast.expr) -> bool:
        value = self.inference.of(index)
        return value.python == "container" or value.is_tensor or isinstance(index, ast.Compare)

    def _together(self, parts: Iterable[ast.expr], whole: bool) -> Traced | None:
        """What is computed of ``parts``, element by element, one of which is of NumPy."""
        parts = list(parts)
        held = [self.of(p) for p in parts]
        if not any(held) or any(self._is_tensor(p) for p, h in zip(parts, held, strict=True) if h is None):
            return None
        return self._computed(parts, held, whole)

    def _computed(self, parts: list[ast.expr], held: list[Traced | None], whole: bool) -> Traced:
        if Traced.ARRAY in held or any(h is None and self._is_listed(p) for p, h in zip(parts, held, strict=True)):
            return Traced.ARRAY
        if not _FOLDED.issuperset(h for h in held if h is not None):
            return Traced.MADE
        integers = all(
            h is Traced.INT or (h is None and self.inference.of(p).python in ("int", "size", "bool"))
            for p, h in zip(parts, held, strict=True)
        )
        return Traced.INT if whole and integers else Traced.FLOAT

    def _called(self, call: ast.Call) -> Traced | None:
        what = self.syntax.qualified(call.func) or ""
        if what.startswith("numpy."):
            return self._made(call, what.removeprefix("numpy."))
        name = self.syntax.builtin(call)
        if name == "abs" and len(call.args) == 1:
            return self.of(call.args[0])
        if name in ("min", "max"):
            return Traced.MADE if self._together(call.args, True) else None
        if not isinstance(call.func, ast.Attribute) or what:
            return None
        held, method = call.func.value, call.func.attr
        if method == "numpy" and not call.args:
            known = self.facts.ask(LikelyTensors).of(held) or not self.inference.of(held).python
            return Traced.ARRAY if known else None
        value = self.of(held)
        if value is None:
            return None
        if method in REDUCING_METHODS:
            return value if value is not Traced.ARRAY else Traced.ARRAY if _has_axis(call) else Traced.MADE
        if method not in SAME_METHODS:
            return None
        if value in _FOLDED and method == "astype":
            return Traced.INT if self._is_whole_type(call) else Traced.FLOAT
        return Traced.MADE if value is Traced.KEPT else value

    def _made(self, call: ast.Call, name: str) -> Traced | None:
        given = [a for a in call.args if not isinstance(a, ast.Starred)]
        if name in ARRAYS or (name == "where" and len(given) == 3):
            return Traced.ARRAY
        if name not in BY_ELEMENT | REDUCING | CONVERTING or not given:
            return None
        first = given[:1] if name in REDUCING | CONVERTING else given
        held = [self.of(a) for a in first]
        if any(self._is_tensor(a) for a in first):
            held = [Traced.ARRAY]
        if name in REDUCING and any(k.arg in _ALONG for k in call.keywords):
            return Traced.ARRAY
        if name in REDUCING | CONVERTING and held == [None] and not self._is_one(first[0]):
            return Traced.MADE if name in REDUCING else Traced.ARRAY
        found = self._computed(first, held, name in WHOLE | TRUE_OR_NOT | REDUCING | CONVERTING)
        if found is Traced.ARRAY and name in REDUCING:
            return Traced.ARRAY if len(given) > 1 and name not in ("dot", "vdot", "inner") else Traced.MADE
        return found

    def _is_one(self, e: ast.expr) -> bool:
        """Whether ``e`` is one number of Python."""
        one = isinstance(e, (ast.List, ast.Tuple)) and len(e.elts) == 1
        return one or (self.inference.of(e).python in ("int", "float", "bool", "size") and not self._is_listed(e))

    def _is_listed(self, e: ast.expr) -> bool:
        """Whether ``e`` is several numbers: a list, a tuple, the shape of a tensor."""
        if isinstance(e, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)):
            return True
        return self.inference.of(e).python == "container" or self.facts.ask(Sizes).is_shape(e)

    def _is_tensor(self, e: ast.expr) -> bool:
        return self.facts.ask(LikelyTensors).of(e)

    def _is_whole_type(self, call: ast.Call) -> bool:
        named = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "dtype")]
        written = next(iter(named), None)
        if isinstance(written, ast.Constant):
            return str(written.value).startswith(("int", "uint"))
        return written is not None and (self.syntax.qualified(written) or ast.unparse(written)) in WHOLE_TYPES


def _one_of(found: list[Traced | None]) -> Traced | None:
    """What all of ``found`` are; where they are several kinds, the one of which least is known."""
    if not found or None in found:
        return None
    return max((f for f in found if f is not None), key=list(Traced).index)


def _has_axis(call: ast.Call) -> bool:
    return bool(call.args) or any(k.arg in _ALONG for k in call.keywords)
