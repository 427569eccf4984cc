"""``x[i]`` where ``i`` is a tensor of one number that compiled code made: the host would have to say which row."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.totality import Effects
from patcher.facts.numbers.asked_numbers import AskedNumbers
from patcher.facts.numbers.likely_masks import LikelyMasks
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.syntax.written import integer
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty, Grade
from patcher.facts.values.types import Category, Kind

_WAY, _LISTED = "tensor as index of one row", "tensor as index of a list"
#: Tensors of other integers are taken for masks, or refused.
_INDICES = frozenset({"torch.int64", "torch.int32"})
#: What may put a tensor on another device.
_MOVING = frozenset("to cpu cuda type type_as new_tensor".split())
#: What gives a tensor of its own, as a method or a function, and what does as a function.
_MAKING = (
    api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | api.REDUCTIONS | {"matmul", "mm", "dot"}
) - frozenset({"positive", "dropout_", "identity_"})
_JOINING = frozenset("stack cat linear where outer bmm".split())


@dataclass(frozen=True)
class Picked:
    """``node`` picks by ``indices``, each a tensor of one number; ``before``: how many slices stand in front of them.

    ``doubt``: what has to be so for an index of one row to give the same; "": nothing. ``reason``: why it does not.
    """

    node: ast.Subscript
    indices: tuple[ast.expr, ...]
    before: int
    doubt: str = ""
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
        if (asked is None or asked.way != _WAY) and not any(self._is_looped_over(p) for p in parts):
            return None
        others = [p for p in parts if p not in indices]
        if not all(isinstance(p, ast.Slice) or self.inference.of(p).python in ("int", "size") for p in others):
            return Picked(node, indices, 0, reason="there is more to the index than numbers and slices")
        before = sum(isinstance(p, ast.Slice) for p in parts[: parts.index(indices[0])])
        if before and len(indices) > 1:
            return Picked(node, indices, before, reason="it picks along several dimensions, behind a slice")
        return Picked(node, indices, before, self._doubt(node, indices), self._reason(node))

    def _is_index(self, e: ast.expr) -> bool:
        held = self.inference.of(e)
        return held.is_scalar_tensor or self._is_looped_over(e)

    def _is_looped_over(self, e: ast.expr) -> bool:
        """Whether ``e`` is an item of a tensor that a loop goes over, whose numbers are bounds and sizes elsewhere."""
        if not isinstance(e, ast.Name) or self.facts.ask(LikelyMasks).of(e):
            return False
        found = self.inference.definitions(e)
        over = [self._over(d.node, e) for d in found if d.how == "iteration"]
        return len(over) == len(found) == 1 and over[0] is not None and self._is_counting(over[0])

    def _over(self, target: ast.AST, name: ast.Name) -> ast.Name | None:
        """The tensor of which ``name`` is an item: ``lengths`` in ``for i, n in enumerate(lengths)``."""
        loop = next((a for a in self.syntax.ancestors(target) if isinstance(a, ast.For)), None)
        match loop:
            case ast.For(target=ast.Name(id=n), iter=ast.Name() as items) if n == name.id:
                return items
            case ast.For(
                target=ast.Tuple(elts=[_, ast.Name(id=n)]), iter=ast.Call(args=[ast.Name() as items]) as call
            ) if n == name.id and self.syntax.builtin(call) == "enumerate":
                return items
        return None

    def _is_counting(self, items: ast.Name) -> bool:
        """Whether ``items`` is a tensor of integers: its largest number bounds a slice in the same function."""
        if not self.inference.of(items).is_tensor:
            return False
        function, found = self.syntax.function_of(items), self.inference.definitions(items)
        for n in self.syntax.own(function, ast.Slice) if function is not None else ():
            match n:
                case ast.Slice(upper=ast.Call(func=ast.Attribute(value=ast.Name() as held, attr="max" | "amax"))):
                    if held.id == items.id and self.inference.definitions(held) == found:
                        return True
        return False

    def _doubt(self, node: ast.Subscript, indices: tuple[ast.expr, ...]) -> str:
        certainty = self.facts.ask(Certainty)
        for e in indices:
            dtype = self.inference.of(e).dtype
            whole = dtype is not None and dtype.category is Category.INT and dtype.which in _INDICES
            if not whole or certainty.of(e) < Grade.USED:
                return f"`{ast.unparse(e)}` is a tensor that holds an integer, and no mask"
        if certainty.of(node.value) < Grade.USED:
            return f"`{ast.unparse(node.value)}` is a tensor"
        if not all(self._is_made_of(e, node.value) for e in indices):
            return f"`{ast.unparse(node.value)}` and what picks are on one device"
        if isinstance(node.ctx, ast.Load) and not self._is_used_up(node):
            return f"nobody writes into what `{ast.unparse(node)}` gives, which was a view, or into what it is of"
        return ""

    def _is_made_of(self, e: ast.expr, base: ast.expr, depth: int = 3) -> bool:
        """Whether ``e`` is computed of ``base``, a name, or of what that was computed of, on its device."""
        names = [n for n in ast.walk(e) if isinstance(n, ast.Name) and not self._is_asked_about(n)]
        if any(isinstance(n, ast.Attribute) and n.attr in _MOVING for n in ast.walk(e)):
            return False
        for n in names:
            if isinstance(base, ast.Name) and n.id == base.id:
                return self.inference.definitions(n) == self.inference.definitions(base)
            values = [d.value for d in self.inference.definitions(n) if d.how == "assign" and d.value is not None]
            if len(values) == 1 and depth and self._is_made_of(values[0], base, depth - 1):
                return True
        return False

    def _is_asked_about(self, name: ast.Name) -> bool:
        """Whether ``name`` is asked for its shape, say, and not for what is in it; or is no tensor."""
        parent = self.syntax.parents.get(name)
        about = isinstance(parent, ast.Attribute) and parent.attr in api.ABOUT
        return about or self.syntax.qualified(name) is not None

    def _reason(self, node: ast.Subscript) -> str:
        """Why ``node`` cannot pick by a tensor of one row."""
        if isinstance(node.ctx, ast.Load):
            return ""
        statement = self.syntax.parents[node]
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            return "it is read and written at once"
        value = self.inference.of(statement.value)
        if value.kind is not Kind.PYTHON or not (value.is_number or integer(statement.value) is not None):
            return "what is written may have another dtype, which is not converted then"
        if self.facts.ask(Effects).may_overlap(node.value):
            return f"`{ast.unparse(node.value)}` may be an expanded view"
        return ""

    def _is_used_up(self, e: ast.expr) -> bool:
        """Whether what ``e`` gives goes into arithmetic, or what makes a tensor of its own, and nowhere else."""
        parent = self.syntax.parents[e]
        match parent:
            case ast.BinOp() | ast.UnaryOp(op=ast.USub() | ast.Invert()):
                return True
            case ast.Compare(ops=ops):
                return not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops)
            case ast.Attribute(value=of, attr=name):
                called = self.syntax.parents[parent]
                return of is e and name in _MAKING and isinstance(called, ast.Call) and called.func is parent
            case ast.List():
                parent = self.syntax.parents[parent]
        if not isinstance(parent, ast.Call) or parent.keywords:
            return False
        what = self.syntax.qualified(parent.func) or ""
        return what.removeprefix("torch.nn.functional.").removeprefix("torch.") in _MAKING | _JOINING
