"""Loops that write blocks on the diagonal of a mask, one after another, between the bounds that a tensor holds."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.chunked.chunks import Chunks, is_plain
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import integer
from patcher.facts.values.types import Rank

#: Functions that return nothing but a tensor, whatever is known of their arguments.
_TENSORS = frozenset(
    "torch.nn.functional.pad torch.cat torch.concat torch.stack torch.cumsum torch.repeat_interleave "
    "torch.as_tensor torch.tensor".split()
)
#: The largest finite number of float16, and what is less than those of the other floats and, when whole, of int64.
_MOST_OF_HALF, _MOST_OF_FLOAT = 65504, 2**62
_WIDE = frozenset({"torch.float32", "torch.float64", "torch.bfloat16", "torch.bool"})


@dataclass(frozen=True)
class BlockMask:
    """``for ...: mask[..., a:b, a:b] = value``, where ``a, b`` are neighbours in ``bounds``, a tensor."""

    loop: ast.For
    mask: ast.expr
    bounds: ast.expr
    value: ast.expr


class BlockMasks(Analysis):
    """Recognises them, however the loop gets at its neighbours."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.chunks = facts.ask(Chunks)

    def of(self, loop: ast.AST) -> BlockMask | None:
        """The blocks that ``loop`` writes; None when it does anything else, or what it does is not known."""
        match loop:
            case ast.For(
                body=[ast.Assign(targets=[ast.Subscript(value=mask, slice=ast.Tuple(elts=elements))], value=value)],
                orelse=[],
            ) if len(elements) >= 2:
                *lead, rows, columns = elements
            case _:
                return None
        assert isinstance(loop, ast.For)
        if not isinstance(rows, ast.Slice) or ast.dump(rows) != ast.dump(columns) or rows.step is not None:
            return None
        if rows.lower is None or rows.upper is None or not isinstance(value, ast.Constant):
            return None
        if not self._fits(value.value, mask) or not self._reaches_last(mask, lead):
            return None
        bounds = self._bounds(loop, rows.lower, rows.upper)
        function = self.syntax.function_of(loop)
        if bounds is None or not is_plain(mask) or not is_plain(bounds) or function is None:
            return None
        if self.flow_of(function).outliving(set(self.syntax.subtree(loop))):
            return None
        same = ast.dump(mask) == ast.dump(bounds)
        return None if same or not self._is_tensor(bounds) else BlockMask(loop, mask, bounds, value)

    def _fits(self, value: object, mask: ast.expr) -> bool:
        """Whether ``value`` is a number that ``mask`` can hold: too much is infinite in a write, and else an error."""
        dtype = self.inference.of(mask).dtype
        wide = dtype is not None and dtype.which in _WIDE
        return isinstance(value, (bool, int, float)) and abs(value) <= (_MOST_OF_FLOAT if wide else _MOST_OF_HALF)

    def _is_tensor(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call) and self.syntax.qualified(e.func) in _TENSORS:
            return True
        definition = self.chunks.only_definition(e) if isinstance(e, ast.Name) else None
        if definition is not None and definition.value is not None and not definition.path:
            return self.inference.of(e).is_tensor or self._is_tensor(definition.value)
        return self.inference.of(e).is_tensor

    def _reaches_last(self, mask: ast.expr, lead: list[ast.expr]) -> bool:
        """Whether the two slices are the last dimensions of ``mask``."""
        held = self.inference.of(mask)
        if not held.is_tensor:
            return False
        if len(lead) == 1 and isinstance(lead[0], ast.Constant) and lead[0].value is ...:
            return True
        whole = all(isinstance(e, ast.Slice) and not (e.lower or e.upper or e.step) for e in lead)
        return whole and held.rank == Rank(None, len(lead) + 2)

    def _bounds(self, loop: ast.For, lower: ast.expr, upper: ast.expr) -> ast.expr | None:
        """The tensor that ``lower`` and ``upper`` run through, from its first two elements to its last."""
        match loop.target, loop.iter:
            case ast.Tuple(elts=[ast.Name(id=a), ast.Name(id=b)]), ast.Call(
                func=ast.Name(id="zip") as zipped, args=[ast.Subscript() as left, ast.Subscript() as right], keywords=[]
            ) if self.syntax.is_builtin(zipped) and a != b and (dotted(lower), dotted(upper)) == (a, b):
                plain = ast.unparse(left.slice) == ":-1" and ast.unparse(right.slice) == "1:"
                return left.value if plain and ast.dump(left.value) == ast.dump(right.value) else None
            case ast.Name(id=i), ast.Call(func=ast.Name(id="range") as counted, args=given, keywords=[]):
                if not self.syntax.is_builtin(counted):
                    return None
                first = (self._at(lower, i), self._at(upper, i))
                if first[0] is None or first[1] is None or ast.dump(first[0][0]) != ast.dump(first[1][0]):
                    return None
                bounds, shifts = first[0][0], (first[0][1], first[1][1])
                name = ast.unparse(bounds)
                counts = (f"len({name})", f"{name}.shape[0]", f"{name}.size(0)", f"{name}.numel()")
                texts = [ast.unparse(g) for g in given]
                from_one = shifts == (-1, 0) and len(texts) == 2 and texts[0] == "1" and texts[1] in counts
                from_zero = shifts == (0, 1) and texts[-1:] and texts[-1] in {f"{c} - 1" for c in counts}
                from_zero = from_zero and texts[:-1] in ([], ["0"])
                return bounds if from_one or from_zero else None
        return None

    @staticmethod
    def _at(e: ast.expr, i: str) -> tuple[ast.expr, int] | None:
        """``x`` and ``k`` of ``x[i + k]``."""
        match e:
            case ast.Subscript(value=base, slice=ast.Name(id=name)) if name == i:
                return base, 0
            case ast.Subscript(value=base, slice=ast.BinOp(left=ast.Name(id=name), op=op, right=step)) if name == i:
                by = integer(step)
                if by is not None and isinstance(op, (ast.Add, ast.Sub)):
                    return base, by if isinstance(op, ast.Add) else -by
        return None
