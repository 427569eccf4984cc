"""``x[i]`` where ``i`` is a tensor of one number that compiled code made: the host would have to say which row."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.numbers.asked_numbers import AskedNumbers
from patcher.facts.numbers.likely_tensors import LikelyTensors

_WAY, _LISTED = "tensor as index of one row", "tensor as index of a list"


#: Tensors of other integers are taken for masks, or refused.
_INDICES = frozenset({"torch.int64", "torch.int32", "torch.long", "torch.int"})


@dataclass(frozen=True)
class Picked:
    """``node`` picks by ``indices``, each a tensor of one number; ``before``: how many slices stand in front of them.

    ``assumption``: what has to be so for an index of one row to do the same. ``reason``: why it does not, or "".
    """

    node: ast.Subscript
    indices: tuple[ast.expr, ...]
    before: int
    assumption: str = ""
    reason: str = ""


class PickedItems(Analysis):
    """Reads of lists of tensors, of one module."""

    def of(self, node: ast.Subscript) -> str | None:
        """What has to be so for ``node``, which picks a tensor out of a list by a tensor, to do so on the device.

        None where it does nothing of the kind.
        """
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple)):
            return None
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            return None
        asked = self.facts.ask(AskedNumbers).at(node)
        if asked is None or asked.way != _LISTED:
            return None
        tensors = self.facts.ask(LikelyTensors).of(node) or self._is_stacked(node.value)
        if not tensors or self.facts.compiled_only(node):
            return None  # the items of a list of something else are no rows
        items, index = ast.unparse(node.value), ast.unparse(node.slice)
        return f"`{items}` holds tensors of one shape and dtype, which compiled code copies, and `{index}` an integer"

    def _is_stacked(self, items: ast.expr) -> bool:
        """Whether the function makes one tensor of ``items``, a name."""
        function = self.syntax.function_of(items)
        for n in self.syntax.own(function, ast.Call) if function is not None else ():
            match n:
                case ast.Call(func=func, args=[ast.Name(id=name), *_]) if isinstance(items, ast.Name):
                    if name == items.id and self.syntax.qualified(func) == "torch.stack":
                        return True
        return False


class PickedRows(Analysis):
    """Those of one module."""

    def of(self, node: ast.Subscript) -> Picked | None:
        """What ``node`` picks; None where it asks no tensor for the number of a row."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = tuple(p for p in parts if not isinstance(p, (ast.Constant, ast.Slice)) and self._is_index(p))
        if not indices or isinstance(node.ctx, ast.Del) or not self.facts.ask(LikelyTensors).of(node.value):
            return None
        asked = self.facts.ask(AskedNumbers).at(node)
        if asked is None or asked.way != _WAY:
            return None
        others = [p for p in parts if p not in indices]
        if not all(isinstance(p, ast.Slice) or self.inference.of(p).python in ("int", "size") for p in others):
            return Picked(node, indices, 0, reason="there is more to the index than numbers and slices")
        before = sum(isinstance(p, ast.Slice) for p in parts[: parts.index(indices[0])])
        if before and len(indices) > 1:
            return Picked(node, indices, before, reason="it picks along several dimensions, behind a slice")
        return Picked(node, indices, before, _assumption(node, indices), self._reason(node, indices))

    def _is_index(self, e: ast.expr) -> bool:
        return self.inference.of(e).is_scalar_tensor

    def _reason(self, node: ast.Subscript, indices: tuple[ast.expr, ...]) -> str:
        """Why ``node`` cannot pick by a tensor of one row."""
        for e in indices:
            dtype = self.inference.of(e).dtype
            if dtype is not None and dtype.which is not None and dtype.which not in _INDICES:
                return f"`{ast.unparse(e)}` is none of int32 or int64, and picks in another way then"
        return ""


def _assumption(node: ast.Subscript, indices: tuple[ast.expr, ...]) -> str:
    names = list(dict.fromkeys(f"`{ast.unparse(e)}`" for e in indices))
    index, base, one = " and ".join(names), f"`{ast.unparse(node.value)}`", len(names) == 1
    holding = f"{index} {'holds an integer' if one else 'hold integers'} on the device of {base}"
    if isinstance(node.ctx, ast.Load):
        return f"{holding}, and nothing writes into any of them, nor into what is read, which is a copy then"
    return f"{holding}, which {'is' if one else 'are'} no part of it, and what is written has its dtype"
