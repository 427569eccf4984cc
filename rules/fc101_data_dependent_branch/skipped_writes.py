"""An ``if`` that only skips writes which would write nothing: ``if mask.any(): x[mask] = 0``.

Also one in a loop that goes on where there is nothing to write: ``if not mask.any(): continue``.
"""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Conditions
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.masks.row_regions import RowRegion, RowRegions

_COUNTS = frozenset({"sum", "count_nonzero"})
#: What converts a tensor, or makes a view of it.
_CONVERTING = frozenset("to type_as float half bfloat16 bool contiguous detach clone unsqueeze squeeze expand".split())


class SkippingTests(Analysis):
    """Such tests of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.conditions = facts.ask(Conditions)
        self.presumed = facts.ask(MaskedReads).presumed

    def of(self, node: ast.If, regions: bool) -> ast.expr | None:
        """The part of the test of ``node`` that says whether anything is set; None when it skips more than writes.

        ``regions``: whether what it computes of the rows that are set is going to be computed of all rows.
        """
        values = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        if node.orelse or (isinstance(node.test, ast.BoolOp) and not isinstance(node.test.op, ast.And)):
            return None
        reading = [v for v in values if self.conditions.reads_data(v)]
        mask, turned = self._mask(reading[0]) if len(reading) == 1 else (None, False)
        if mask is None or values[-1] is not reading[0] or not self.presumed.boolean(mask):
            return None
        return reading[0] if self._skips(node.body, mask, turned, regions) else None

    def going_on(self, node: ast.If, regions: bool) -> bool:
        """Whether ``node`` goes on with the next round of a loop where nothing is set that the rest would write."""
        block = self.syntax.block_of(node)
        rest = block[block.index(node) + 1 :]
        match node.test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                mask = self._reduced(operand, _COUNTS | {"any"})
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
                mask = self._reduced(left, _COUNTS)
            case _:
                mask = None
        alone = len(node.body) == 1 and isinstance(node.body[0], ast.Continue) and not node.orelse
        inside = isinstance(self.syntax.parents[node], ast.For) and bool(rest)
        boolean = mask is not None and self.presumed.boolean(mask)
        return mask is not None and boolean and alone and inside and self._skips(rest, mask, False, regions)

    def _skips(self, body: list[ast.stmt], mask: ast.expr, turned: bool, regions: bool) -> bool:
        """Whether statements write nothing where the mask has no place set."""
        asked = self.facts.ask(RowRegions)
        text, region = asked.spelled(mask), asked.of(body[0]) if regions and not turned else None
        if isinstance(region, RowRegion) and region.masks <= {text}:
            body = body[len(region.statements) :]
        return all(self._writes(s, ast.unparse(mask), turned) or self._adds_count(s, text) for s in body)

    def _adds_count(self, s: ast.stmt, text: str) -> bool:
        """Whether ``s`` adds how many places are set, to a tensor: a number would become one."""
        match s:
            case ast.AugAssign(target=target, op=ast.Add(), value=value) if self.presumed.of(target).is_tensor:
                while (
                    isinstance(value, ast.Call)
                    and isinstance(value.func, ast.Attribute)
                    and (value.func.attr in _CONVERTING)
                ):
                    value = value.func.value
                mask = self._reduced(value, _COUNTS)
                return mask is not None and self.facts.ask(RowRegions).spelled(mask) == text
        return False

    def _mask(self, test: ast.expr) -> tuple[ast.expr | None, bool]:
        """The mask that has nothing set when ``test`` is false; and whether it is its opposite."""
        match test:
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
                return self._mask(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._mask(inner)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._reduced(operand, frozenset({"all"})), True
            case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
                return self._reduced(left, _COUNTS), False
        return self._reduced(test, _COUNTS | {"any"}), False

    def _reduced(self, e: ast.expr, names: frozenset[str]) -> ast.expr | None:
        """The mask that ``e`` reduces to one element by one of ``names``."""
        match e:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._reduced(inner, names)
            case ast.Call(func=func, args=[mask], keywords=[]) if self.syntax.qualified(func) in {
                f"torch.{n}" for n in names
            }:
                return None if _works(mask) else mask
            case ast.Call(func=ast.Attribute(value=mask, attr=name), args=[], keywords=[]) if name in names:
                return None if _works(mask) else mask
        return None

    def _writes(self, s: ast.stmt, mask: str, turned: bool) -> bool:
        """Whether ``s`` writes plain values through the mask, and does nothing else."""
        match s:
            case (
                ast.Pass()
                | ast.Assign(
                    targets=[ast.Name()], value=ast.Call(func=ast.Attribute(value=ast.Name(), attr="clone"), args=[])
                )
            ):
                return True
            case ast.Assign(targets=[ast.Subscript(value=into, slice=ast.Tuple(elts=[at, *_]) | at)], value=value):
                pass
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name() as into, attr="masked_fill"), args=[at, value], keywords=[]
                ),
            ) if into.id == name:
                pass
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=into, attr="masked_fill_"), args=[at, value], keywords=[])
            ):
                pass
            case _:
                return False
        held = {ast.unparse(n) for n in ast.walk(at)}
        opposite = any(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Invert) for n in ast.walk(at))
        through = mask in held and (opposite or "logical_not" in ast.unparse(at)) is turned
        return (
            through
            and self.presumed.boolean(at)
            and not _works(value)
            and mask not in {ast.unparse(n) for n in ast.walk(value)}
        )


def _works(e: ast.expr) -> bool:
    """Whether ``e`` does more than to look up, convert and compare."""
    calls = (n for n in ast.walk(e) if isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Lambda, ast.IfExp)))
    return any(
        not isinstance(n, ast.Call)
        or (isinstance(n.func, ast.Attribute) and n.func.attr not in _CONVERTING | {"finfo", "iinfo"})
        or (isinstance(n.func, ast.Name) and n.func.id != "float")
        for n in calls
    )
