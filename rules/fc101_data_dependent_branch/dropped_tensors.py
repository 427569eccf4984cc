"""A tensor that is dropped where data says that it makes no difference: ``if not mask.any(): mask = None``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged


@dataclass(frozen=True)
class DroppedTensor:
    """``test`` drops ``names``, where it is true or, with ``kept``, where it is not."""

    test: ast.expr
    names: tuple[str, ...]
    kept: bool = False


class DroppedTensors(Analysis):
    """Such tests of one module."""

    def of(self, node: ast.If | ast.IfExp) -> DroppedTensor | None:
        """What ``node`` drops; None when it does more than that, or asks about something else."""
        names, kept = self._dropped(node)
        if not names or not all(self._asks(node.test, name) for name in names):
            return None
        if self.facts.ask(Unchanged).why_impure(node.test):
            return None  # compiled code leaves it out
        return DroppedTensor(node.test, names, kept)

    def _dropped(self, node: ast.If | ast.IfExp) -> tuple[tuple[str, ...], bool]:
        if isinstance(node, ast.If):
            names = [_emptied(s) for s in node.body]
            return (() if node.orelse or None in names else tuple(n for n in names if n is not None)), False
        match self.syntax.parents[node]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                arms = [_is_none(node.body), _is_none(node.orelse)]
                others = [e.id for e in (node.body, node.orelse) if isinstance(e, ast.Name)]
                return ((name,) if any(arms) and others == [name] else ()), arms[1]
        return (), False

    def _asks(self, test: ast.expr, name: str) -> bool:
        """Whether ``test`` is about what ``name`` holds: it reads it, or a tensor that was computed of it."""
        tensors = [n for n in ast.walk(test) if isinstance(n, ast.Name) and self.inference.of(n).is_tensor]
        values = [d.part[0] for n in tensors for d in self.inference.definitions(n) if d.how == "assign"]
        return any(n.id == name for e in (test, *filter(None, values)) for n in ast.walk(e) if isinstance(n, ast.Name))


def _emptied(s: ast.stmt) -> str | None:
    match s:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_none(value):
            return name
    return None


def _is_none(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is None
