"""An ``if`` around work on what a mask picks, which is no work where nothing is set: ``x[mask] = f(y[mask])``.

What is picked has a size that only a setting of PyTorch takes into the graph; there, a size of zero is one like others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.in_force import InForce
from patcher.facts.syntax.written import is_whole
from rules.fc101_data_dependent_branch.skipped_writes import SkippedWrites, SkippingTests

_SETTING = "capture_dynamic_output_shape_ops"
_BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


class PickedWrites(Analysis):
    """Such tests of one module, where the setting is in force."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.skipping = facts.ask(SkippingTests)
        self.captured = _SETTING in facts.ask(InForce).names

    def of(self, node: ast.If) -> SkippedWrites | None:
        """What ``node`` skips when nothing is set, taking for granted that it can be done with nothing."""
        asked = self.skipping.asked(node) if self.captured else None
        function = self.syntax.function_of(node)
        if asked is None or function is None:
            return None
        reading, masks = asked
        inside = [n for s in node.body for n in ast.walk(s)]
        if any(isinstance(n, _BINDING) for n in inside):
            return None
        targets = [t for s in node.body for t in self._targets(s)]
        written = [t for t in targets if isinstance(t, ast.Subscript) and _picks(t, masks)]
        names = {t.id for t in targets if isinstance(t, ast.Name)}
        read = [n for n in inside if isinstance(n, ast.Subscript) and _picks(n, masks) and isinstance(n.ctx, ast.Load)]
        if len(written) + len([t for t in targets if isinstance(t, ast.Name)]) != len(targets) or not written:
            return None  # something else than a statement of these, or a write past the mask
        if not read or names & self.flow_of(function).outliving(inside) or names & _mentioned(masks):
            return None
        doubts: dict[str, None] = dict.fromkeys([self._worked(node)])
        for target in written:
            mask = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) else target.slice
            taken = self.skipping.taken_for(target.value, mask, node)
            if taken is None:
                return None
            doubts |= dict.fromkeys(taken)
        return SkippedWrites(reading, (*doubts, "what is trained may get a gradient of zeros rather than none"))

    def _worked(self, node: ast.If) -> str:
        """What has to be granted of the work itself."""
        called = dict.fromkeys(ast.unparse(n.func) for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call))
        named = f" ({', '.join(f'`{name}`' for name in called)})" if called else ""
        return f"what is computed{named} can be computed of no elements, and does nothing else then"

    def _targets(self, s: ast.stmt) -> Iterator[ast.expr | None]:
        """What ``s`` assigns; None where it does something else."""
        match s:
            case ast.Assign(targets=[ast.Tuple(elts=targets)]):
                yield from targets
            case ast.Assign(targets=[target]):
                yield target
            case ast.AugAssign(target=ast.Subscript() as target):
                yield target
            case _:
                yield None


def _picks(e: ast.Subscript, masks: frozenset[str]) -> bool:
    """Whether ``e`` is ``x[mask]`` or ``x[mask, :]``."""
    at = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
    return ast.unparse(at[0]) in masks and all(map(is_whole, at[1:]))


def _mentioned(masks: frozenset[str]) -> set[str]:
    return {n.id for mask in masks for n in ast.walk(ast.parse(mask, mode="eval")) if isinstance(n, ast.Name)}
