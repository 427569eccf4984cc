"""A branch that only says which of two tensors is kept, both of which are made of what the module has, not of inputs.

``if furthest > self.trained: self.register_buffer("rates", self.long_rates) else: ...``: what both arms need is made in
any case, and ``torch.where`` picks.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.project.does import in_place
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Category, Kind, Value
from rules.fc101_data_dependent_branch.prepared_arms import (
    Kept,
    PreparedArm,
    PreparedArms,
    made,
    read,
    values,
    written,
)
from rules.fc101_data_dependent_branch.settled import Settled

_BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.comprehension)


@dataclass(frozen=True)
class ChosenState:
    """``prepared`` is done in any case, then each of ``kept`` with what ``condition`` picks, granted ``doubts``.

    ``test_first``: the condition has to be evaluated before all that, once.
    """

    condition: Condition
    prepared: tuple[ast.stmt, ...]
    kept: tuple[tuple[Kept, Kept], ...]
    doubts: tuple[str, ...]
    test_first: bool


class ChosenStates(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.conditions = facts.ask(Conditions)
        self.settled = facts.ask(Settled)
        self.arms = facts.ask(PreparedArms)

    def of(self, node: ast.If) -> ChosenState | None:
        """What ``node`` chooses; None when an arm does more than that, or is made of inputs."""
        condition = self.conditions.take_apart(node.test)
        if not isinstance(condition, Condition) or condition.guard or not node.orelse:
            return None
        if any(isinstance(n, _BINDING) for n in ast.walk(node)):
            return None
        one, other = self.arms.of(node.body), self.arms.of(node.orelse)
        if one is None or other is None or not one.kept or len({k.place for k in one.kept}) < len(one.kept):
            return None
        if [k.form for k in one.kept] != [k.form for k in other.kept] or _mixed(node.test, one, other):
            return None
        prepared = one.prepared | other.prepared
        pairs = tuple(zip(one.kept, other.kept, strict=True))
        made_of = [e for s in prepared.values() for e in values(s)] + [k.value for pair in pairs for k in pair]
        if any(self.settled.acts(e) or not self.settled.is_made(e) for e in made_of):
            return None
        if not all(self._are_tensors(*pair, node) for pair in pairs):
            return None
        doubts = [d for s in prepared.values() for d in self._readied(s)]
        there = set().union(*map(written, prepared.values()))
        doubts += [
            d for k in (*one.kept, *other.kept) if ast.unparse(k.value) not in there for d in self._evaluated(k.value)
        ]
        doubts += [d for pair in pairs for d in self._chosen(*pair, node)]
        calls = any(isinstance(n, ast.Call) for n in ast.walk(node.test))
        first = len(pairs) > 1 or (calls and bool(prepared))
        return ChosenState(condition, tuple(prepared.values()), pairs, tuple(dict.fromkeys(doubts)), first)

    def _are_tensors(self, one: Kept, other: Kept, node: ast.If) -> bool:
        """Whether both are tensors that a third can stand for, for all that is known."""
        held = [self.inference.of(k.value) for k in (one, other)]
        buffer = isinstance(one.statement, ast.Expr)  # which takes nothing but tensors
        if not all(v.is_tensor or (buffer and v.kind is Kind.UNKNOWN) for v in held):
            return False
        if any(v.trainable for v in held):
            return False
        if _differ(*held):
            return False
        existing = [k.value for k in (one, other) if self.effects.aliases(k.value)]
        if isinstance(one.statement, ast.Assign) and isinstance(one.statement.targets[0], ast.Name):
            return all(self._stays_here(k, existing, node) for k in (one, other))
        names = {e.attr for e in existing if isinstance(e, ast.Attribute)} | {one.place.rpartition(".")[2]}
        return not existing or not any(self._changed(n) for n in self.syntax.by_type[ast.Attribute] if n.attr in names)

    def _stays_here(self, kept: Kept, existing: list[ast.expr], node: ast.If) -> bool:
        """Whether the tensor that a name gets here is told from a copy by nobody, as far as can be seen."""
        function = self.syntax.function_of(node)
        assert function is not None and isinstance(kept.statement, ast.Assign)
        definition = self.flow_of(function).by_node.get(kept.statement.targets[0])
        if definition is None:
            return False
        if not existing:
            return True
        changed = self.effects.changed_while_used(existing, node, definition)
        return changed is None and self.effects.escapes(definition, function) is None

    def _changed(self, attribute: ast.Attribute) -> bool:
        """Whether the tensor ``attribute`` is changed in place here."""
        outer = self.effects.through_views(attribute)
        parent = self.syntax.parents[outer]
        if isinstance(outer, ast.Subscript) and not isinstance(outer.ctx, ast.Load):
            return True
        if isinstance(parent, ast.AugAssign) and parent.target is outer:
            return True
        call = self.syntax.parents[parent] if isinstance(parent, ast.Attribute) else parent
        if not isinstance(call, ast.Call):
            return False
        return in_place(call, parent.attr if isinstance(parent, ast.Attribute) else dotted(call.func) or "")

    # --- what is granted --------------------------------------------------------------------------------------------

    def _readied(self, s: ast.stmt) -> list[str]:
        called = [n for e in values(s) for n in ast.walk(e) if isinstance(n, ast.Call)]
        if (place := made(s)) is not None:
            work = " and ".join(f"`{short(c.func)}`" for c in called[:1])
            how = f": {work} can be called for it, and does nothing else" if work else ""
            return [f"`{place}` may be there where it was not needed{how}"]
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Attribute):
            return [f"`{short(s.value)}` changes nothing but the device, and can be evaluated in any case"]
        return [d for e in values(s) for d in self._evaluated(e)]

    def _evaluated(self, e: ast.expr) -> list[str]:
        return [f"`{short(e)}` can be evaluated in any case"] if self.effects.why_not_total(e) is not None else []

    def _chosen(self, one: Kept, other: Kept, node: ast.If) -> list[str]:
        both = f"`{short(one.value)}` and `{short(other.value)}`"
        existing = [k for k in (one, other) if self.effects.aliases(k.value)]
        graded = existing and not self.facts.ask(GradientMode).off(node)
        doubts = [f"{both} have one shape, dtype and device" + (", and are not trained" if graded else "")]
        if existing and "." in one.place:
            doubts.append(f"nobody asks which of the two tensors `{one.place}` is, or changes it in place")
        return doubts


def _differ(one: Value, other: Value) -> bool:
    """Whether two values are seen to be of different dtypes or ranks."""
    dtypes = {v.dtype.category for v in (one, other) if v.dtype is not None} - {Category.UNKNOWN}
    apart = one.rank.minus(other.rank) if one.rank is not None and other.rank is not None else None
    return len(dtypes) > 1 or bool(apart)


def _mixed(test: ast.expr, one: PreparedArm, other: PreparedArm) -> bool:
    """Whether the order counts, or what one arm makes ready is something else for the other."""
    places = {k.place for k in one.kept}
    ready = {text: written(s) for arm in (one, other) for text, s in arm.prepared.items()}
    if read(test) & (places | set().union(*ready.values())):
        return True
    for arm, twin in ((one, other), (other, one)):
        made_of = [*arm.prepared.values(), *(k.value for k in arm.kept)]
        if any(read(e) & places for e in made_of) or any(names & places for names in ready.values()):
            return True
        for text in twin.prepared.keys() - arm.prepared.keys():
            used = set().union(*(read(e) for e in made_of), *(written(s) for s in arm.prepared.values()))
            if ready[text] & used:
                return True
    return False
