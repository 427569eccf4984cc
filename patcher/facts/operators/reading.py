"""From the expressions of a function to terms, through the names that it gives to what it has computed."""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import islice

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.operators.terms import Leaf, Op, Term, constant, number, power, product, subterms, total
from patcher.facts.syntax.written import integer
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import FOREIGN, Kind

_DEPTH = 40
#: No operator has as many parts.
_LARGEST = 400
#: Functions of one tensor that matter here, by the last name that PyTorch gives them.
_PLAIN = {"sigmoid": "sigmoid", "expit": "sigmoid", "tanh": "tanh", "erf": "erf", "exp": "exp"}
_POWERS = {"rsqrt": -0.5, "sqrt": 0.5, "square": 2.0, "reciprocal": -1.0}
_BINARY = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*",
    "div": "/", "divide": "/", "true_divide": "/", "pow": "**", "matmul": "@", "bmm": "bmm",
}  # fmt: skip
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
_REDUCED = ("mean", "sum", "var", "softmax")
_MODULES = {"torch.nn.Sigmoid": "sigmoid", "torch.nn.Tanh": "tanh"}
_INFINITIES = ("math.inf", "torch.inf", "numpy.inf")
_RESHAPING = frozenset("reshape view unflatten flatten".split())
_MATH = {"math.sqrt": 0.5, "numpy.sqrt": 0.5}


@dataclass(frozen=True)
class Masked:
    """``scores``, to which ``mask`` was added in ``statement`` if there is one."""

    definitions: tuple[Definition, ...]
    scores: ast.expr
    mask: ast.Name
    statement: ast.If


class Reading(Analysis):
    """What the expressions of one module compute. Terms are kept per node."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._terms: dict[ast.expr, Term] = {}
        self._depth = 0

    def of(self, e: ast.expr) -> Term:
        """What ``e`` computes where it stands."""
        known = self._terms.get(e)
        if known is None:
            self._terms[e] = Leaf(e)  # what is defined by itself, in a loop, ends here
            self._depth += 1
            term = self._of(e) if self._depth < _DEPTH else self._leaf(e)
            self._depth -= 1
            # what is made of itself twice, step by step, grows beyond all bounds
            whole = sum(1 for _ in islice(subterms(term), _LARGEST + 1)) <= _LARGEST
            known = self._terms[e] = term if whole else self._leaf(e)
        return known

    def expanded(self, name: ast.Name) -> Definition | None:
        """The one assignment that gave ``name`` what it holds where it is read, if no other can have."""
        function = self.syntax.function_of(name)
        found = self.inference.definitions(name)
        if function is None or len(found) != 1 or self.syntax.is_lambda_parameter(name):
            return None
        (d,), flow, state = found, self.flow_of(function), self.inference.state(name)
        single = d.how == "assign" and not d.path and d.value is not None and flow.by_node.get(d.node) is d
        hidden = d.name in flow.captured | flow.shared | flow.deleted or state is None or d in state.earlier
        return d if single and not hidden else None

    def masked(self, name: ast.Name) -> Masked | None:
        """What ``name`` is after ``if mask is not None: name = name + mask``, and nothing else can have made it."""
        found = sorted(self.inference.definitions(name), key=lambda d: getattr(d.node, "lineno", 0))
        if len(found) != 2 or any(d.how not in ("assign", "augmented") or d.path or d.value is None for d in found):
            return None
        statement = self.syntax.statement_of(found[1].node)
        test = self.syntax.parents[statement]
        if not isinstance(test, ast.If) or test.orelse or test.body != [statement]:
            return None
        match test.test, statement:
            case ast.Compare(left=ast.Name() as mask, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]), (
                ast.Assign(value=ast.BinOp(left=ast.Name() as scores, op=ast.Add(), right=ast.Name() as added))
                | ast.AugAssign(target=ast.Name() as scores, op=ast.Add(), value=ast.Name() as added)
            ) if added.id == mask.id and scores.id == name.id and found[0].value is not None:
                before = self.syntax.statement_of(found[0].node)
                first = found[0].how == "assign" and test in self.syntax.following(before)
                return Masked(tuple(found), found[0].value, added, test) if first else None
        return None

    def is_leaf(self, e: ast.expr) -> bool:
        """Whether ``e`` is not looked into."""
        return isinstance(self.of(e), Leaf)

    # --- expressions ------------------------------------------------------------------------------------------------

    def _of(self, e: ast.expr) -> Term:
        match e:
            case ast.Constant(value=bool()):
                return self._leaf(e)
            case ast.Constant(value=int() | float() as value):
                return number(value)
            case ast.Name():
                d = self.expanded(e)
                if d is not None and d.value is not None:
                    return self.of(d.value)
                if (masked := self.masked(e)) is not None:
                    return Op("masked", (self.of(masked.scores), self.of(masked.mask)))
                return self._leaf(e)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return product([(self.of(inner), 1.0)], -1.0)
            case ast.BinOp():
                return self._operation(e)
            case ast.Attribute(value=base, attr=attr):
                return self._attribute(e, base, attr)
            case ast.Call():
                return self._call(e)
            case ast.Subscript(value=base, slice=index):
                place = integer(index)
                if place is not None and isinstance(base, ast.Attribute) and base.attr == "shape":
                    return Op("size", (self.of(base.value),), (place,))
        return self._leaf(e)

    def _leaf(self, e: ast.expr) -> Leaf:
        return Leaf(self._key(e), self.inference.of(e).is_number)

    def _key(self, e: ast.expr) -> Hashable:
        """What is equal for two reads of one and the same thing."""
        match e:
            case ast.Name():
                state = self.inference.state(e)
                return e.id, self.inference.definitions(e), state.version if state is not None else None
            case ast.Attribute(value=base, attr=attr):
                return self._key(base), attr
            case ast.Constant(value=value):
                return type(value), value
            case ast.Subscript(value=base, slice=index) if _is_plain(index):
                return self._key(base), ast.unparse(index)
        return e

    def _operation(self, e: ast.BinOp) -> Term:
        sign = _OPERATORS.get(type(e.op))
        if sign in ("+", "-"):
            return total(self._addends(e, 1.0))
        if sign in ("*", "/"):
            return product(self._factors(e, 1.0))
        return self._binary(sign, e.left, e.right) or self._leaf(e)

    def _addends(self, e: ast.expr, coefficient: float) -> list[tuple[Term, float]]:
        """What is added up where it stands: what has a name of its own stays whole."""
        match e:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                other = -coefficient if isinstance(op, ast.Sub) else coefficient
                return [*self._addends(left, coefficient), *self._addends(right, other)]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._addends(inner, -coefficient)
        return [(self.of(e), coefficient)]

    def _factors(self, e: ast.expr, exponent: float) -> list[tuple[Term, float]]:
        match e:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
                other = -exponent if isinstance(op, ast.Div) else exponent
                return [*self._factors(left, exponent), *self._factors(right, other)]
        return [(self.of(e), exponent)]

    def _binary(self, sign: str | None, left: ast.expr, right: ast.expr) -> Term | None:
        a, b = self.of(left), self.of(right)
        if sign in ("+", "-"):
            return total([(a, 1.0), (b, 1.0 if sign == "+" else -1.0)])
        if sign in ("*", "/"):
            return product([(a, 1.0), (b, 1.0 if sign == "*" else -1.0)])
        if sign in ("@", "bmm"):
            return Op("matmul", (a, b), ("bmm",) if sign == "bmm" else ())
        value = constant(b)
        base = constant(a)
        if sign == "**" and value is not None and (base is None or base > 0):
            return power(a, value)
        return None

    def _attribute(self, e: ast.Attribute, base: ast.expr, attr: str) -> Term:
        what = self.syntax.qualified(e)
        if what in ("math.pi", "numpy.pi", "torch.pi"):
            return number(math.pi)
        if what is not None or self.inference.of(base) == FOREIGN:
            return self._leaf(e)
        if attr == "dtype":
            return self._dtype_of(self.of(base))
        if attr == "mT":
            return Op("transpose", (self.of(base),), ((-2, -1),))
        return self._leaf(e)

    def _dtype_of(self, term: Term) -> Term:
        if isinstance(term, Op) and term.name == "cast" and isinstance(term.given[0], (Leaf, Op)):
            return term.given[0]
        return Op("dtype", (term,))

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, e: ast.Call) -> Term:
        if (rotated := self._rotated(e)) is not None:
            return rotated
        if any(isinstance(a, ast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords):
            return self._leaf(e)
        what = self.syntax.qualified(e.func)
        if what in _MATH or what in ("math.pow", "float", "torch.tensor"):
            return self._host(e, what or "")
        if what is not None:
            owner, _, name = what.rpartition(".")
            if owner not in ("torch", "torch.nn.functional", "torch.special") or not e.args:
                return self._leaf(e)
            if name == "dropout":
                return self._dropped(e)
            return self._tensor_call(e, name, e.args[0], e.args[1:]) or self._leaf(e)
        if not isinstance(e.func, ast.Attribute):
            match e.args:
                case [ast.Constant(value="-inf")] if self.syntax.builtin(e) == "float":
                    return number(-math.inf)
            return self._leaf(e)
        module = self.inference.of(e.func)
        if module.module == "torch.nn.Dropout" and len(e.args) == 1:
            return Op("dropout", (self.of(e.args[0]), self.of(e.func)), (e, "module"))
        if module.kind is Kind.MODULE:
            name = _MODULES.get(module.module, "")
            return Op(name, (self.of(e.args[0]),)) if name and len(e.args) == 1 else self._leaf(e)
        receiver = self.inference.of(e.func.value)
        if receiver.kind in (Kind.MODULE, Kind.PYTHON) or receiver == FOREIGN:
            return self._leaf(e)
        return self._tensor_call(e, e.func.attr, e.func.value, e.args) or self._leaf(e)

    def _host(self, e: ast.Call, what: str) -> Term:
        """A number that is worked out on the host."""
        values = [constant(self.of(a)) for a in e.args]
        if what in _MATH and len(values) == 1:
            if values[0] is not None and values[0] > 0:
                return number(values[0] ** _MATH[what])
            if self.inference.of(e.args[0]).is_number:
                return power(self.of(e.args[0]), _MATH[what])
        if (
            what == "math.pow"
            and len(values) == 2
            and values[0] is not None
            and values[1] is not None
            and values[0] > 0
        ):
            return number(values[0] ** values[1])
        return self._leaf(e)

    def _tensor_call(self, e: ast.Call, name: str, x: ast.expr, rest: list[ast.expr]) -> Term | None:
        """``name`` of ``x``, as a method or a function of PyTorch; None for what is not known here."""
        keywords = {str(k.arg): k.value for k in e.keywords}
        if name in _PLAIN and not rest and not keywords:
            return Op(_PLAIN[name], (self.of(x),))
        if name in _POWERS and not rest and not keywords:
            return power(self.of(x), _POWERS[name])
        if name in _BINARY:
            other = rest[0] if len(rest) == 1 and not keywords else None
            other = keywords.get("exponent") if name == "pow" and not rest and len(keywords) == 1 else other
            return self._binary(_BINARY[name], x, other) if other is not None else None
        if name in _REDUCED:
            return self._reduced(name, x, rest, keywords)
        if name in api.CASTS and not rest and not keywords:
            return self._cast(x, api.CASTS[name])
        if name in ("to", "type", "type_as"):
            return self._converted(name, x, rest, keywords)
        if name in ("transpose", "swapaxes", "swapdims") and len(rest) == 2 and not keywords:
            dims = [integer(d) for d in rest]
            return Op("transpose", (self.of(x),), (tuple(sorted(d for d in dims if d is not None)),))
        if name == "masked_fill" and len(rest) == 2 and not keywords:
            return Op(name, (self.of(x), self.of(rest[0])), (self._filling(rest[1]),))
        if name in ("view_as_real", "view_as_complex") and not rest and not keywords:
            return Op(name, (self.of(x),))
        if name == "size" and len(rest) == 1 and not keywords and (place := integer(rest[0])) is not None:
            return Op("size", (self.of(x),), (place,))
        return None

    def _dropped(self, e: ast.Call) -> Term:
        """``F.dropout(x, p, training)``, which is another one at each place."""
        given = dict(zip(("p", "training"), e.args[1:], strict=False))
        given |= {str(k.arg): k.value for k in e.keywords}
        if given.keys() - {"p", "training"}:
            return self._leaf(e)
        words = tuple(name for name in ("p", "training") if name in given)
        return Op("dropout", (self.of(e.args[0]), *(self.of(given[name]) for name in words)), (e, *words))

    def _filling(self, e: ast.expr) -> float | None:
        value = constant(self.of(e))
        return self._infinity(e) if value is None else value

    def _infinity(self, e: ast.expr) -> float | None:
        """``-math.inf`` and its like."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return -math.inf if self.syntax.qualified(e.operand) in _INFINITIES else None
        return None

    # --- rotations --------------------------------------------------------------------------------------------------

    def _rotated(self, e: ast.Call) -> Term | None:
        """``torch.cat((-x2, x1), -1)``, where these are the parts of one ``x``, also as a function of this file."""
        what = self.syntax.qualified(e.func)
        if what in ("torch.cat", "torch.stack") and e.args and isinstance(e.args[0], (ast.Tuple, ast.List)):
            match e.args[0].elts:
                case [ast.UnaryOp(op=ast.USub(), operand=second), first] if _joined_along(e) == -1:
                    one, other = self._part_of(first), self._part_of(second)
                    if one is not None and other == (one[0], 1) and one[1] == 0:
                        return Op("turned", (one[0],), ("halves" if what == "torch.cat" else "pairs",))
            return None
        if isinstance(e.func, ast.Attribute) and e.func.attr in _RESHAPING and what is None:
            term = self.of(e.func.value)
            return term if isinstance(term, Op) and term.name == "turned" else None
        if len(e.args) != 1 or e.keywords or not isinstance(e.func, ast.Name) or what is not None:
            return None
        callees = self.facts.ask(Callees)
        function = next((f for name in callees.of(e) if (f := callees.here(name)) is not None), None)
        last = function.body[-1] if function is not None else None
        if function is None or not isinstance(last, ast.Return) or last.value is None or len(function.args.args) != 1:
            return None
        term = self.of(last.value)
        own = isinstance(term, Op) and term.name == "turned"
        return Op("turned", (self.of(e.args[0]),), term.given) if own and isinstance(term, Op) else None

    def _part_of(self, e: ast.expr) -> tuple[Term, int] | None:
        """What ``e`` is a part of, and which: of ``x`` for ``x[..., :n]``, and for a name out of ``x.chunk(2, -1)``."""
        while isinstance(e, ast.Name):
            (d, *more) = self.inference.definitions(e) or (None,)
            value, path = d.part if d is not None and d.how == "assign" and not more else (None, ())
            if value is None:
                return None
            if path:
                whole = _parted(value)
                return (self._bare(whole), path[0]) if whole is not None and path in ((0,), (1,)) else None
            e = value
        place = _side(e.slice) if isinstance(e, ast.Subscript) else None
        return (self._bare(e.value), place) if isinstance(e, ast.Subscript) and place is not None else None

    def _bare(self, e: ast.expr) -> Term:
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _RESHAPING:
            e = e.func.value
        return self.of(e)

    def _reduced(self, name: str, x: ast.expr, rest: list[ast.expr], keywords: dict[str, ast.expr]) -> Term | None:
        """A reduction over dimensions that are written down; ``given``: they, and whether they stay."""
        names = {"softmax": ("dim", "dtype"), "var": ("dim", "unbiased", "keepdim")}.get(name, ("dim", "keepdim"))
        found = {**dict(zip(names, rest, strict=False)), **keywords}
        if len(rest) > len(names) or found.keys() - {*names, "axis", "correction", "dtype"}:
            return None  # NumPy's arrays have ``keepdims``
        dims = _dimensions(found.get("dim", found.get("axis")))
        keep = _flag(found.get("keepdim"))
        source = self.of(x)
        if "dtype" in found:
            if (to := self._dtype(found["dtype"])) is None:
                return None
            source = Op("cast", (source,), (to,))
        if dims is None or keep is None:
            return None
        if name == "var":
            correction = self._correction(found)
            return None if correction is None else Op(name, (source,), (dims, keep, correction))
        return Op(name, (source,), (dims,) if name == "softmax" else (dims, keep))

    def _correction(self, found: dict[str, ast.expr]) -> int | None:
        if "correction" in found:
            return integer(found["correction"])
        if "unbiased" not in found:
            return 1
        biased = _flag(found["unbiased"])
        return None if biased is None else int(biased)

    def _dtype(self, e: ast.expr) -> Hashable | None:
        """What stands for the dtype that ``e`` is."""
        constant = self.inference.of(e).constant
        if isinstance(constant, str) and constant in api.DTYPES:
            return {"torch.float": "torch.float32", "torch.half": "torch.float16"}.get(constant, constant)
        term = self.of(e)
        return term if isinstance(term, Op) and term.name == "dtype" else None

    def _cast(self, x: ast.expr, to: Hashable) -> Term:
        return Op("cast", (self.of(x),), (to,))

    def _converted(self, name: str, x: ast.expr, rest: list[ast.expr], keywords: dict[str, ast.expr]) -> Term | None:
        given = [*rest, *(v for k, v in keywords.items() if k == "dtype")]
        if len(given) != 1 or keywords.keys() - {"dtype"}:
            return None
        if name == "type_as":
            return self._cast(x, self._dtype_of(self.of(given[0])))
        to = self._dtype(given[0])
        return self._cast(x, to) if to is not None else None


def _joined_along(e: ast.Call) -> int | None:
    """The dimension that ``torch.cat`` or ``torch.stack`` is given."""
    given = [*e.args[1:2], *(k.value for k in e.keywords if k.arg in ("dim", "axis"))]
    return integer(given[0]) if len(given) == 1 else None


def _parted(e: ast.expr) -> ast.expr | None:
    """``x`` of ``x.chunk(2, dim=-1)`` and of ``x.unbind(-1)``: what is parted along its last dimension, or in pairs."""
    if not isinstance(e, ast.Call) or not isinstance(e.func, ast.Attribute):
        return None
    along = {"chunk": (-1,), "split": (-1,), "tensor_split": (-1,), "unbind": (-1, -2)}.get(e.func.attr, ())
    given = [*e.args[e.func.attr != "unbind" :], *(k.value for k in e.keywords if k.arg in ("dim", "axis"))]
    return e.func.value if len(given) == 1 and integer(given[0]) in along else None


def _side(index: ast.expr) -> int | None:
    """Which part of two ``[..., :n]`` and ``[..., n:]``, ``[..., ::2]`` and ``[..., 1::2]``, ``[..., 0]`` are."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index
    if not isinstance(last, ast.Slice):
        place = integer(last)
        return place if place in (0, 1) else None
    if last.step is not None:
        start = 0 if last.lower is None else integer(last.lower)
        return start if integer(last.step) == 2 and last.upper is None and start in (0, 1) else None
    if (last.lower is None) == (last.upper is None):
        return None
    return int(last.lower is not None)


def _dimensions(e: ast.expr | None) -> tuple[int, ...] | None:
    elements = e.elts if isinstance(e, (ast.Tuple, ast.List)) else [e]
    dims = [integer(d) for d in elements if d is not None]
    return tuple(sorted(d for d in dims if d is not None)) if dims and None not in dims else None


def _flag(e: ast.expr | None) -> bool | None:
    if e is None:
        return False
    return e.value if isinstance(e, ast.Constant) and isinstance(e.value, bool) else None


def _is_plain(index: ast.expr) -> bool:
    """Whether nothing but numbers is in an index."""
    allowed = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(n, allowed) for n in ast.walk(index))
