"""An ``if`` that only skips writes which would write nothing: ``if mask.any(): x[mask] = 0``."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.masks.row_regions import RowRegion, RowRegions
from patcher.facts.syntax.tree import FunctionNode, Syntax
from patcher.facts.syntax.written import is_whole
from patcher.facts.values.types import Category

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Numbers up to this one fit into every dtype.
_SMALL = 100
#: What gives a mask with nothing set for one with nothing set.
_SPREADING = frozenset("unsqueeze expand expand_as view reshape bool contiguous to squeeze".split())
#: What converts a tensor, or makes a view of it.
_CONVERTING = frozenset("to type_as float half bfloat16 contiguous detach clone unsqueeze squeeze".split())
#: What makes a tensor that no backward pass keeps.
_UNKEPT = frozenset(
    "clone zeros ones full empty zeros_like ones_like full_like empty_like masked_fill where cat stack matmul bmm "
    "linear add sub mul div sum mean new_zeros new_ones new_full masked_scatter".split()
)
_UNKEPT_LAYERS = frozenset({"torch.nn.Linear", "torch.nn.Embedding", "torch.nn.Conv1d", "torch.nn.Conv2d"})
_LOOKED_AT = frozenset("shape dtype device ndim size dim numel is_cuda".split())


@dataclass(frozen=True)
class SkippedWrites:
    """``test``: the part of the condition that says whether anything is set. ``doubts``: what is taken for granted."""

    test: ast.expr
    doubts: tuple[str, ...]


class SkippingTests(Analysis):
    """Such tests of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.masked_reads = facts.ask(MaskedReads)
        self.row_regions = facts.ask(RowRegions)
        self.conditions = facts.ask(Conditions)

    def of(self, node: ast.If, regions: bool = False) -> SkippedWrites | None:
        """What ``node`` skips when nothing is set; None when it does more than that, as far as can be told.

        ``regions``: whether what it computes of the rows that are set is going to be computed of all rows.
        """
        asked = self.asked(node)
        if asked is None:
            return None
        reading, masks = asked
        region = self.row_regions.of(node.body[0]) if regions else None
        if isinstance(region, RowRegion) and region.statements == tuple(node.body) and region.masks <= masks:
            taken = " and ".join(f"`{t}`" for t in region.taken_for) or "what is computed"
            doubt = f"{taken} has no state, and may get a gradient of zeros rather than none, where nothing is set"
            return SkippedWrites(reading, (doubt, "what is written to is no leaf that requires a gradient"))
        doubts: dict[str, None] = {}
        for s in node.body:
            found = self.write(s, masks, node)
            if found is None:
                return None
            doubts |= dict.fromkeys(found)
        return SkippedWrites(reading, tuple(doubts))

    def asked(self, node: ast.If) -> tuple[ast.expr, frozenset[str]] | None:
        """The part of the test that says whether anything is set, and how the mask may be spelled.

        None where the test asks something else, or more than may be asked when nothing is set.
        """
        values = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        if node.orelse or (isinstance(node.test, ast.BoolOp) and not isinstance(node.test.op, ast.And)):
            return None
        reading = [v for v in values if self.conditions.reads_data(v)]
        masks = self._masks(reading[0]) if len(reading) == 1 else frozenset()
        if not masks:
            return None
        late = values[values.index(reading[0]) + 1 :]
        if any(self.effects.why_not_total(v) is not None for v in late):
            return None  # it was not asked when nothing is set
        return reading[0], masks

    # --- the test ---------------------------------------------------------------------------------------------------

    def _masks(self, test: ast.expr) -> frozenset[str]:
        """How the mask may be spelled that has nothing set when ``test`` is false; nothing when there is none."""
        match test:
            case ast.Call(func=ast.Name(id="bool") as func, args=[inner], keywords=[]):
                return self._masks(inner) if self.syntax.is_builtin(func) else frozenset()
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._masks(inner)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                mask = self._reduced(operand, ("all",), item=True)
                return frozenset(_turned(mask)) if mask is not None else frozenset()
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(limit))]):
                above = (limit == 0 and isinstance(op, (ast.Gt, ast.NotEq))) or (limit == 1 and isinstance(op, ast.GtE))
                mask = self._reduced(left, ("sum", "count_nonzero"), item=True) if above else None
            case _:
                mask = self._reduced(test, ("any", "sum", "count_nonzero"))
        return frozenset({ast.unparse(mask)} if mask is not None else ())

    def _reduced(self, e: ast.expr, names: tuple[str, ...], item: bool = False) -> ast.expr | None:
        """The mask that ``e`` reduces to one element by one of ``names``."""
        match e:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]) if item:
                return self._reduced(inner, names)
            case ast.Call(func=func, args=[mask], keywords=[]) if self._reduces(func, names):
                pass
            case ast.Call(func=ast.Attribute(value=mask, attr=name), args=[], keywords=[]) if name in names:
                pass
            case _:
                return None
        if not self.masked_reads.presumed.boolean(mask):
            return None
        # written twice, it has to be the same twice
        worked = any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Lambda)) for n in ast.walk(mask))
        return None if worked else mask

    def _reduces(self, func: ast.expr, names: tuple[str, ...]) -> bool:
        return self.syntax.qualified(func) in {f"torch.{n}" for n in names}

    # --- the writes -------------------------------------------------------------------------------------------------

    def write(self, s: ast.stmt, masks: frozenset[str], node: ast.If) -> list[str] | None:
        """What has to be granted for ``s`` to write nothing where nothing is set; None when it is no such write."""
        match s:
            case ast.Pass():
                return []
            case ast.Assign(
                targets=[ast.Name() as target], value=ast.Call(func=ast.Attribute(value=ast.Name() as into))
            ):
                return self._copied(target, into, s.value, masks, node)
            case ast.Assign(targets=[ast.Subscript(value=into, slice=at)], value=value):
                mask = at.elts[0] if isinstance(at, ast.Tuple) and all(map(is_whole, at.elts[1:])) else at
                fits = self.masked_reads.row(into, mask) is not None
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=into, attr="masked_fill_"), args=args, keywords=[])):
                if len(args) != 2:
                    return None
                mask, value = args
                fits = self.fits(into, mask)
            case _:
                return None
        root = _root(into)
        if not self._none_set(mask, masks) or root is None or not self.inference.of(into).is_tensor:
            return None
        if self.effects.why_not_total(root) is not None or self.facts.ask(GradientMode).locked(root, node):
            return None  # it may be unbound, or cannot be changed here
        granted = self._filled(mask, value, into, fits, masks)
        if granted is None or (self.inference.of(root).trainable and not self.facts.ask(GradientMode).off(node)):
            return None
        overlap = [f"`{ast.unparse(into)}` is no expanded view"] if self.effects.may_overlap(into) else []
        return [*granted, *overlap, *self._recorded(root, into, mask, node)]

    def _copied(
        self, target: ast.Name, into: ast.Name, value: ast.expr, masks: frozenset[str], node: ast.If
    ) -> list[str] | None:
        """``h = h.clone()`` and ``h = h.masked_fill(mask, 0)``: another tensor, with what the old one has."""
        match value:
            case ast.Call(func=ast.Attribute(attr="clone"), args=[], keywords=[]):
                granted: list[str] | None = []
            case ast.Call(func=ast.Attribute(attr="masked_fill"), args=[mask, filling], keywords=[]):
                seen = self._none_set(mask, masks)
                granted = self._filled(mask, filling, into, self.fits(into, mask), masks) if seen else None
            case _:
                return None
        if granted is None or into.id != target.id or not self.inference.of(into).is_tensor:
            return None
        if self.effects.why_not_total(into) is not None:
            return None  # it may be unbound
        if self.loses_gradient(into, target, node):
            return None
        alone = self.effects.fresh(into, node, into.id)
        return [*granted, *([] if alone else [f"nobody asks whether `{into.id}` is still the same tensor"])]

    def loses_gradient(self, into: ast.Name, target: ast.Name, node: ast.If) -> bool:
        """Whether a new tensor, in ``target``, may get no gradient where ``into`` gets one, or the other way round."""
        function, mode = self.syntax.function_of(node), self.facts.ask(GradientMode)
        if function is None:
            return True
        flow = self.flow_of(function)
        for d in self.inference.definitions(into):
            if mode.changes_between(d.node, node) or any(map(self._asks_for_gradient, flow.uses.get(d, ()))):
                return True
        if not mode.may_be_off(node) or self.effects.fresh(into, node, into.id):
            return False
        read = flow.uses.get(flow.by_node[target], ()) if target in flow.by_node else ()
        return any(
            mode.changes_between(node, use) or isinstance(self.syntax.statement_of(use), ast.Return) for use in read
        )

    def _asks_for_gradient(self, use: ast.Name) -> bool:
        """``h.requires_grad_()`` and ``h.requires_grad = True``."""
        match self.syntax.parents[use]:
            case ast.Attribute(attr="requires_grad_") | ast.Attribute(attr="requires_grad", ctx=ast.Store()):
                return True
        return False

    def fits(self, into: ast.expr, mask: ast.expr) -> bool:
        """Whether a mask fits what it fills by broadcasting."""
        mask = mask.operand if isinstance(mask, ast.UnaryOp) else mask
        match mask:
            case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze"), args=[dim], keywords=[]):
                return ast.unparse(dim) == "-1" and self.masked_reads.row(into, inner) == 1
            case ast.Subscript(
                value=inner, slice=ast.Tuple(elts=[ast.Constant(value=first), ast.Constant(value=None)])
            ):
                return first is ... and self.masked_reads.row(into, inner) == 1
        return self.masked_reads.row(into, mask) == 0

    def _filled(
        self, mask: ast.expr, value: ast.expr, into: ast.expr, fits: bool, masks: frozenset[str]
    ) -> list[str] | None:
        """What has to be granted for ``mask`` and ``value`` to be evaluated and to fit where nothing is set."""
        if not self.masked_reads.presumed.boolean(mask) or any(ast.unparse(n) in masks for n in ast.walk(value)):
            return None  # an index; or the value is read through the mask, so that its size depends on data
        granted = self.value(value, into)
        if granted is None:
            return None
        if not self.masked_reads.presumed.sure(mask, self.inference):
            granted = [f"`{ast.unparse(mask)}` is a tensor", *granted]
        sure = fits and (ast.unparse(mask) in masks or self._spread(mask))
        return granted if sure else [f"`{ast.unparse(mask)}` fits `{ast.unparse(into)}`", *granted]

    def _none_set(self, mask: ast.expr, masks: frozenset[str]) -> bool:
        mask = _inside_out(mask)
        match mask:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SPREADING:
                return self._none_set(inner, masks)
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)):
                if all(is_whole(p) or (isinstance(p, ast.Constant) and p.value is None) for p in parts):
                    return self._none_set(inner, masks)
        return ast.unparse(mask) in masks

    def _spread(self, mask: ast.expr) -> bool:
        """Whether ``mask`` is made of a mask in a way that cannot fail."""
        mask = mask.operand if isinstance(mask, ast.UnaryOp) else mask
        match mask:
            case ast.Call(func=ast.Attribute(attr="bool"), args=[], keywords=[]):
                return True
            case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[dim], keywords=[]):
                return ast.unparse(dim) in ("-1", "0")
        return isinstance(mask, ast.Subscript)

    def value(self, value: ast.expr, into: ast.expr) -> list[str] | None:
        """What has to be granted for ``value`` to be evaluated and taken where nothing is set."""
        held, dtype = self.inference.of(value), self.inference.of(into).dtype
        category = dtype.category if dtype is not None else Category.UNKNOWN
        text = f"`{ast.unparse(value)}`"
        number: object = written(value, self.syntax)
        if number is not None or (self.effects.is_number(value) and self.effects.why_not_total(value) is None):
            number = held.constant if number is None else number
            if isinstance(number, (bool, int)) and abs(number) <= _SMALL:
                return []
            if category is Category.FLOAT:
                limit = isinstance(value, ast.Attribute) and "finfo" in ast.unparse(value.value)
                small = isinstance(number, float) and (abs(number) <= _SMALL or not math.isfinite(number))
                if small or (limit and f"{ast.unparse(into)}.dtype" in ast.unparse(value)):
                    return []
            return [f"{text} fits the dtype of `{ast.unparse(into)}`"]
        if not all(map(_looks_up, _calls(value))):
            return None  # it is work, or more than that
        granted = f"{text} can be evaluated, and fits, where nothing is set"
        return [granted, "a parameter in it may get a gradient of zeros rather than none"]

    def _recorded(self, root: ast.Name, into: ast.expr, mask: ast.expr, node: ast.If) -> list[str]:
        """What has to be granted where gradients are recorded."""
        dtype = self.inference.of(into).dtype
        without = dtype is not None and dtype.category in (Category.INT, Category.BOOL)
        if without or self.facts.ask(GradientMode).off(node):
            return []
        if changed := self.facts.ask(Unchanged).why_written_later(_inside_out(mask), node):
            return [f"no backward pass needs `{ast.unparse(mask)}` as it was, and {changed}"]
        if self._unkept(root, node):
            return []
        return [f"`{root.id}` is no leaf that requires a gradient, and no backward pass needs what it held"]

    def _unkept(self, root: ast.Name, node: ast.If) -> bool:
        """Whether what ``root`` holds was made by operations that do not keep it, and has not been used since."""
        function = self.syntax.function_of(node)
        definitions = self.inference.definitions(root)
        if function is None or not definitions or root.id in self.flow_of(function).captured:
            return False
        return all(self._made_unkept(d) and self._unused(d, node, function) for d in definitions)

    def _made_unkept(self, d: Definition) -> bool:
        if d.how != "assign" or d.path or d.value is None or self.effects.aliases(d.value):
            return False
        match d.value:
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.MatMult()):
                return True
            case ast.Call(func=func):
                what = self.syntax.qualified(func)
                name = func.attr if isinstance(func, ast.Attribute) else (what or "").rpartition(".")[2]
                if self.inference.instance_attribute(func) is not None:
                    return self.inference.of(func).module in _UNKEPT_LAYERS
                return name in _UNKEPT and (what is None or what.startswith("torch."))
        return False

    def _unused(self, d: Definition, node: ast.If, function: FunctionNode) -> bool:
        """Whether nothing that may keep it for a backward pass has used ``d`` before ``node`` is done."""
        inside = set(ast.walk(node))
        loops = [set(ast.walk(p)) for p in self.syntax.ancestors(node) if isinstance(p, _LOOPS)]
        again = {n for loop in loops if d.node not in loop for n in loop}
        for use in self.flow_of(function).uses.get(d, ()):
            parent = self.syntax.parents[use]
            looks = isinstance(parent, ast.Compare) or (isinstance(parent, ast.Attribute) and parent.attr in _LOOKED_AT)
            if use not in inside and not looks and (use in again or use.lineno <= node.lineno):
                return False
        return True


def _turned(mask: ast.expr) -> Iterator[str]:
    """Spellings of ``~mask``."""
    inner = ast.unparse(mask)
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            yield ast.unparse(operand)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            other = ast.NotEq() if isinstance(op, ast.Eq) else ast.Eq()
            yield ast.unparse(ast.Compare(left, [other], [right]))
            yield f"~({inner})"
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            yield f"~{inner}"
            yield f"{inner}.logical_not()"


def _inside_out(mask: ast.expr) -> ast.expr:
    """``~m.unsqueeze(-1)`` as ``(~m).unsqueeze(-1)``."""
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=ast.Call(func=ast.Attribute(value=value, attr=attr)) as call):
            turned = ast.UnaryOp(ast.Invert(), value)
            return ast.Call(ast.Attribute(turned, attr, ast.Load()), call.args, call.keywords)
        case ast.UnaryOp(op=ast.Invert(), operand=ast.Subscript(value=value, slice=ast.Tuple() as at)):
            return ast.Subscript(ast.UnaryOp(ast.Invert(), value), at, ast.Load())
    return mask


def written(e: ast.expr, syntax: Syntax) -> int | float | None:
    """The number in ``-100`` and ``float("-inf")``."""
    match e:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = written(operand, syntax)
            return None if inner is None else -inner
        case ast.Call(args=[ast.Constant(value="inf" | "-inf" as text)], keywords=[]) if syntax.builtin(e) == "float":
            return float(text)
    return None


def _root(into: ast.expr) -> ast.Name | None:
    """The name in ``x`` or ``x[1:]``."""
    if isinstance(into, ast.Subscript):
        parts = into.slice.elts if isinstance(into.slice, ast.Tuple) else [into.slice]
        return _root(into.value) if all(isinstance(p, ast.Slice) or is_whole(p) for p in parts) else None
    return into if isinstance(into, ast.Name) else None


def _calls(e: ast.expr) -> Iterator[ast.AST]:
    """What ``e`` does besides reading names."""
    return (n for n in ast.walk(e) if isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.IfExp)))


def _looks_up(n: ast.AST) -> bool:
    """Whether ``n`` converts something."""
    return isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _CONVERTING
