"""Which new tensors that ask for gradients are only computed with, or handed back."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.running.by_default import ByDefault
from patcher.facts.syntax.written import short
from patcher.facts.values.certainty import Certainty, Grade

_MAKERS = frozenset(f"torch.{name}" for name in ("tensor", "zeros", "ones", "full", "zeros_like", "ones_like"))
#: What makes a tensor out of no other one.
_NEW = _MAKERS | {f"torch.{n}" for n in "empty rand randn randint arange linspace eye rand_like randn_like".split()}


@dataclass(frozen=True)
class Leaf:
    """The tensor ``made``; ``asked`` says whether it asks for gradients: of ``told``, None where nothing is written.

    ``reason``: why it has to; "" where not.
    """

    made: ast.Call
    asked: ast.expr | None
    reason: str = ""
    told: ast.expr | None = None


class Leaves(Analysis):
    """New tensors of one module."""

    def of(self, made: ast.Call) -> Leaf | None:
        """The tensor that ``made`` makes, when it asks for gradients."""
        if isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_":
            return self._told(made, made.func.value)
        asked = next((k.value for k in made.keywords if k.arg == "requires_grad"), None)
        if self.syntax.qualified(made.func) not in _MAKERS or asked is None:
            return None
        match asked:
            case ast.Constant(value=True):
                return Leaf(made, asked, self._why_needed(made))
            case ast.Name():
                known = self.inference.of(asked)
                bound = self.inference.definitions(asked)
                given = bool(bound) and all(d.how == "parameter" for d in bound)
                if known.python == "bool" or given:
                    return Leaf(made, asked, self._why_needed(made))
            case ast.Attribute():
                held = self.facts.ask(ByDefault).of(asked)
                if held is not None and held.value is True:
                    return Leaf(made, asked, self._why_needed(made))
        return None

    def _told(self, call: ast.Call, tensor: ast.expr) -> Leaf | None:
        """``tensor``, which is computed here, when it is told to ask for gradients."""
        given = [*call.args, *(k.value for k in call.keywords)]
        if given and not (len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is True):
            return None
        if self.facts.ask(Certainty).of(tensor) < Grade.USED:
            return None
        if isinstance(tensor, ast.Name):
            values = {d.value for d in self.inference.definitions(tensor) if d.how == "assign" and not d.path}
            if not values or len(values) != len(self.inference.definitions(tensor)):
                return None
            if not all(isinstance(v, (ast.Call, ast.BinOp)) for v in values):
                return None
        elif not isinstance(tensor, (ast.Call, ast.BinOp)):
            return None
        reason = "" if self._asks_for_none(tensor) else f"`{short(tensor)}` may be computed of what asks for gradients"
        return Leaf(call, given[0] if given else None, reason or self._why_needed(call), tensor)

    def _asks_for_none(self, e: ast.expr) -> bool:
        """Whether the tensor ``e`` asks for no gradients; one that is computed of what does cannot be told not to."""
        if isinstance(e, ast.Constant) or self.facts.ask(GradientMode).off(e):
            return True
        match e:
            case ast.Name():
                return self._is_still_such(e)
            case ast.BinOp(left=left, right=right):
                return self._asks_for_none(left) and self._asks_for_none(right)
            case ast.Call(func=func, keywords=keywords) if (what := self.syntax.qualified(func)) is not None:
                return what in _NEW and all(k.arg not in (None, "requires_grad") for k in keywords)
            case ast.Call(func=ast.Attribute(attr="detach")):
                return True
            case ast.Call(func=ast.Attribute(value=of), args=args, keywords=keywords):
                return all(map(self._asks_for_none, (of, *args, *(k.value for k in keywords))))
        return False

    def _is_still_such(self, name: ast.Name) -> bool:
        """Whether ``name`` was made so that it asks for no gradients, and nothing is written into it since."""
        changed, found = self.facts.ask(Unchanged).why_changed, self.inference.definitions(name)
        return bool(found) and all(
            d.how == "assign"
            and not d.path
            and d.value is not None
            and self._asks_for_none(d.value)
            and not changed(name, self.syntax.statement_of(d.node), name)
            for d in found
        )

    def _why_needed(self, made: ast.Call) -> str:
        """Why the gradient of ``made`` may be asked for, or the tensor changed; "" where it is only computed with."""
        statement = self.syntax.parents[made]
        match statement:
            case ast.Assign(targets=[ast.Name() as target]):
                readers = self.readers(target)
                if readers is None:
                    return f"a function inside reads `{target.id}`"
                uses: list[ast.expr] = [*readers]
            case _:
                uses = [made]
        for use in uses:
            if not self._is_operand(use):
                return f"`{ast.unparse(self.syntax.statement_of(use)).splitlines()[0]}` does more than compute with it"
        return ""

    def _is_operand(self, use: ast.expr) -> bool:
        """Whether ``use`` is an operand of arithmetic, or handed back, by itself or in a tuple, list or dict."""
        around = self.syntax.parents[use]
        while isinstance(around, (ast.Tuple, ast.List, ast.Dict, ast.IfExp)):
            around = self.syntax.parents[around]
        match around:
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return True
            case ast.Return():
                return True
            case ast.Assign(targets=[ast.Name() as target], value=value):
                readers = self.readers(target) if value is not use else None
                return readers is not None and all(isinstance(self.syntax.parents[r], ast.Return) for r in readers)
        return False
