"""A branch on tensor data as a choice: what each name holds after it, and the proof that both arms can be evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Condition, Conditions, Junction, Leaf, Negation, Tensor
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import short
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind, Value
from rules.fc101_data_dependent_branch.branches import Arm, Assigned, Branches
from rules.fc101_data_dependent_branch.gradients import Gradients
from rules.fc101_data_dependent_branch.refusal import Refused
from rules.fc101_data_dependent_branch.saved_tensors import kept_by

#: Methods and functions whose gradient is that of what they get, or zero.
_ADDING = frozenset("clamp clip nan_to_num to float half bfloat16 contiguous".split())
_NOT_FINITE = frozenset({"isnan", "isinf", "isfinite", "nan_to_num"})
#: What depends on how a tensor lies in memory.
_OF_STRIDES = ("view", "view_as", "stride", "as_strided", "is_contiguous")


@dataclass(frozen=True)
class Merge:
    """What takes the place of a branch.

    ``replaced``: the statements that go. ``temporaries`` come first, all of it under ``guard`` (a Python test that
    stays an ``if``) when there is one. Each of ``results`` is a target (None: returned), what it gets when
    ``condition`` is true, and what else. ``test_first``: the condition is evaluated before the temporaries.
    ``doubts``: what has to be granted.
    """

    replaced: tuple[ast.stmt, ...]
    condition: Condition
    results: tuple[tuple[ast.expr | None, ast.expr, ast.expr], ...]
    temporaries: tuple[Assigned, ...] = ()
    guard: tuple[ast.expr, ...] = ()
    test_first: bool = False
    doubts: tuple[str, ...] = ()


class Merging(Analysis):
    """Works out merges."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.conditions = facts.ask(Conditions)
        self.gradients = facts.ask(Gradients)
        self.branches = facts.ask(Branches)

    def of(self, node: ast.If | ast.IfExp) -> Merge | str:
        """The merge of ``node``, or what is not proven."""
        self._doubts: list[str] = []
        try:
            condition = self.conditions.take_apart(node.test)
            if isinstance(condition, str):
                raise Refused(condition)
            if isinstance(node, ast.If) and node.body and not isinstance(node.body[-1], ast.Return):
                merge = self._statement(node, condition)
            elif condition.guard:
                raise Refused("a part of the test is no tensor")
            elif isinstance(node, ast.If):
                merge = self._early_return(node, condition, node.orelse or self.syntax.following(node)[:1])
            else:
                merge = self._conditional(node, condition)
        except Refused as refusal:
            return str(refusal)
        return replace(merge, doubts=tuple(dict.fromkeys(self._doubts)))

    # --- the three forms --------------------------------------------------------------------------------------------

    def _conditional(self, node: ast.IfExp, condition: Condition) -> Merge:
        merge = Merge((), condition, ((None, node.body, node.orelse),))
        self._prove(merge, node)
        self._goes_nowhere(node)
        return merge

    def _statement(self, node: ast.If, condition: Condition) -> Merge:
        if condition.guard and (node.orelse or not condition.conjunction):
            raise Refused("a part of the test is no tensor")
        one, other = self._arm(node.body), self._arm(node.orelse)
        targets = {name: a.target for arm in (other, one) for name, a in arm.results.items()}
        temporaries = (*one.temporaries, *other.temporaries)
        if not targets:
            raise Refused("the arms assign nothing that is used later")
        for test in condition.guard if len(targets) > 1 else ():
            reason = self.effects.why_not_total(test)
            if reason is not None or self.branches.reads(test) & targets.keys():
                raise Refused(reason or f"`{short(test)}` reads what the arms assign")
        if len({ast.unparse(t.target) for t in temporaries}) < len(temporaries):
            raise Refused("two arms use one temporary")
        assigned = [(name, a, arm) for arm in (one, other) for name, a in arm.results.items()]
        for name, a, arm in assigned:
            late = [t.value for t in arm.temporaries if _starts(t.statement) > _starts(a.statement)]
            if name in self.branches.reads(*late, *(b.value for other_name, b, _ in assigned if other_name != name)):
                raise Refused("an arm reads what is assigned above")
        pairs = {
            name: [arm.results[name].value if name in arm.results else self._old(name, node) for arm in (one, other)]
            for name in targets
        }
        results = tuple((target, pairs[name][0], pairs[name][1]) for name, target in targets.items())
        merge = Merge((node,), condition, results, temporaries, condition.guard)
        self._prove(merge, node)
        function = self.syntax.function_of(node)
        assert function is not None
        for name, a, _ in assigned:
            definition = self.flow_of(function).by_node.get(a.target)
            self._told_from_copy(node, pairs[name], definition, name)
            uses = self.flow_of(function).uses.get(definition, []) if definition is not None else []
            if any(getattr(self.syntax.parents[use], "attr", "") in _OF_STRIDES for use in uses):
                named = (n for v in pairs[name] for n in ast.walk(v) if isinstance(n, ast.Name))
                several = len({n.id for n in named if self.inference.of(n).is_tensor}) > 1
                if several or any("contiguous" in ast.unparse(v) for v in pairs[name]):
                    self._doubts.append(f"both branches of `{name}` have one memory format")
        return replace(
            merge,
            test_first=bool(temporaries) and self.conditions.why_not_total(Condition(condition.tensor)) is not None,
        )

    def _early_return(self, node: ast.If, condition: Condition, rest: list[ast.stmt]) -> Merge:
        if len(rest) != 1 or not isinstance(rest[0], ast.Return):
            raise Refused("the function goes on after this early return")
        taken, other = node.body[-1], rest[0]
        assert isinstance(taken, ast.Return)
        arm = self._arm(node.body[:-1])
        if arm.results:
            raise Refused("the arm assigns names that are used outside of it")
        if taken.value is None or other.value is None:
            raise Refused("one arm returns nothing")
        replaced = (node,) if node.orelse else (node, rest[0])
        merge = Merge(replaced, condition, ((None, taken.value, other.value),), arm.temporaries)
        self._prove(merge, node)
        if not (self.effects.fresh(taken.value, node) and self.effects.fresh(other.value, node)):
            raise Refused("an arm returns an existing tensor, which the caller could tell from a copy")
        return replace(
            merge,
            test_first=bool(arm.temporaries) and self.conditions.why_not_total(Condition(condition.tensor)) is not None,
        )

    # --- arms -------------------------------------------------------------------------------------------------------

    def _arm(self, body: list[ast.stmt]) -> Arm:
        arm = self.branches.arm(body)
        if isinstance(arm, str):
            raise Refused(arm)
        return arm

    def _old(self, name: str, branch: ast.If) -> ast.expr:
        """What ``name`` holds when its arm is not taken."""
        before = self.branches.bound_before(branch, name)
        if before is None:
            raise Refused(f"`{name}` may be unbound when the branch is not taken")
        return before

    def _told_from_copy(
        self, branch: ast.stmt | ast.expr, values: list[ast.expr], definition: Definition | None, name: str | None
    ) -> None:
        """Refuse when one of ``values`` exists, and what is merged, into ``definition``, can be told from it."""
        function = self.syntax.function_of(branch)
        assert function is not None
        uses = self.flow_of(function).uses.get(definition, []) if definition is not None else []
        mode = self.facts.ask(GradientMode)
        if mode.may_be_off(branch):
            leaves = any(mode.changes_between(branch, use) or self._returned(use) for use in uses)
            for value in values:
                if self.effects.aliases(value) and self.gradients.carries(value) and leaves:
                    raise Refused(f"`{short(value)}` may carry a gradient out of here")
        existing = [v for v in values if not self.effects.fresh(v, branch, name)]
        if not existing:
            return
        reason = self.effects.escapes(definition, function) if definition is not None else None
        if reason is not None and (definition is None or self._is_changed(definition, function)):
            raise Refused(reason)
        if (changed := self.effects.changed_while_used(existing, branch, definition)) is not None:
            raise Refused(changed)
        if reason is not None:
            self._doubts.append(f"`{name}` is not compared by identity, or changed in place: {reason}")

    def _is_changed(self, definition: Definition, function: FunctionNode) -> bool:
        """Whether what ``definition`` binds is changed in place by its name, or read by other functions."""
        flow = self.flow_of(function)
        uses = flow.uses.get(definition, ())
        return definition.name in flow.captured or any(self.effects.is_changed_by(use, surely=True) for use in uses)

    def _returned(self, use: ast.expr) -> bool:
        return isinstance(self.syntax.statement_of(use), ast.Return)

    def _goes_nowhere(self, node: ast.IfExp) -> None:
        """The value of a conditional expression must go into an operator, or into a name that does not escape."""
        arms = [node.body, node.orelse]
        function = self.syntax.function_of(node)
        parent = self.syntax.parents[self.effects.through_views(node)]
        named = isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)
        if function is not None and named and isinstance(parent, ast.Assign):
            definition = self.flow_of(function).by_node.get(parent.targets[0])
            if definition is not None:
                self._told_from_copy(node, arms, definition, definition.name)
                return
        if all(self.effects.fresh(arm, node) and not self.effects.aliases(arm) for arm in arms):
            return
        if function is None or not self.effects.used_up(node):
            raise Refused("an arm is an existing tensor, which could be told from a copy")
        self._told_from_copy(node, arms, None, None)

    # --- proofs -----------------------------------------------------------------------------------------------------

    def _prove(self, merge: Merge, node: ast.If | ast.IfExp) -> None:
        """Refuse what cannot be evaluated in any case, or is not of one form, or gets other gradients."""
        further = [t.value for t in merge.temporaries]
        off = self.facts.ask(GradientMode).off(node)
        finite = off or not any(map(_asks_of_finite, (node.test, *(v for _, *pair in merge.results for v in pair))))
        for _, one, other in merge.results:
            own = self.gradients.own([one, other])
            if not finite and (steep := next((e for e in chain(*own) if self._multiplies(e)), None)) is not None:
                self._doubts.append(f"no gradient goes through `{short(steep)}` where a number is not finite")
            if any(map(_is_wide, own[0])) is not any(map(_is_wide, own[1])):
                self._doubts.append(f"`{short(one)}` and `{short(other)}` have one dtype, also under autocast")
            self._total([one, other])
            if not off and (reason := self.gradients.why_not_alike([one, other])) is not None:
                raise Refused(reason)
            self._same(one, self.inference.of(one), other, self.inference.of(other))
        self._total(further)
        if not off:
            self._stays_as_it_was(merge, further, node)

    def _total(self, values: list[ast.expr]) -> None:
        for value in values:
            reason = self.effects.why_not_total(value)
            if reason is None and not self.facts.ask(GradientMode).off(value):
                reason = self.effects.why_not_smooth(value)
            if reason is not None:
                raise Refused(reason)

    def _stays_as_it_was(self, merge: Merge, further: Sequence[ast.expr], node: ast.AST) -> None:
        """Refuse where something is changed later that a backward pass of what is evaluated anew needs as it was."""
        mode = self.facts.ask(GradientMode)
        values = [v for _, *pair in merge.results for v in pair]
        kept = [n for v in (*values, *further) for n in kept_by(v, self._is_number)]
        kept += [
            leaf for leaf in self._leaves(merge.condition.tensor) if self.effects.aliases(leaf)
        ]  # `where` keeps it
        assumed = ""
        for e in kept:
            if self._is_number(e):
                continue
            if reason := mode.why_saved_changes(e, node, by_calls=False):
                raise Refused(f"a backward pass needs what the arms read as it was: {reason}")
            if not assumed and (assumed := mode.why_saved_changes(e, node)):
                self._doubts.append(f"no later call mutates what the backward pass reads: {assumed}")

    def _leaves(self, part: Tensor) -> Iterator[ast.expr]:
        match part:
            case Leaf(expr=expr):
                yield expr
            case Negation(part=inner):
                yield from self._leaves(inner)
            case Junction(parts=parts):
                for inner in parts:
                    yield from self._leaves(inner)

    def _multiplies(self, e: ast.expr) -> bool:
        """Whether a backward pass multiplies with what ``e`` reads: zero times NaN is no zero."""
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr=name), args=args) if name in _ADDING:
                return any(map(self._multiplies, (held, *args)))
            case ast.Call(func=func, args=[_, *args]) if last_name(func) == "where":
                return any(map(self._multiplies, args))
        return next(kept_by(e, self._is_number), None) is not None

    def _is_number(self, e: ast.expr) -> bool:
        return self.inference.of(e).is_number

    def _same(self, a: ast.expr, first: Value, b: ast.expr, other: Value) -> None:
        """Both arms must be tensors of one shape and dtype."""
        for e, v in ((a, first), (b, other)):
            if not v.is_tensor:
                what = "a Python value" if v.kind is Kind.PYTHON else "not known to be a tensor"
                raise Refused(f"`{short(e)}` is {what}")
        if first.dtype is None or other.dtype is None or not first.dtype.same(other.dtype):
            raise Refused(f"the dtypes of `{short(a)}` and `{short(b)}` are not known to be the same")
        if first.shape is None or first.shape != other.shape:
            raise Refused(f"the shapes of `{short(a)}` and `{short(b)}` are not known to be the same")


def _asks_of_finite(e: ast.expr) -> bool:
    """Whether ``e`` expects numbers that are not finite."""
    called = {last_name(n.func) for n in ast.walk(e) if isinstance(n, ast.Call)}
    compared = (n for n in ast.walk(e) if isinstance(n, ast.Compare))
    return bool(called & _NOT_FINITE) or any(ast.dump(n.left) == ast.dump(n.comparators[0]) for n in compared)


def _is_wide(e: ast.expr) -> bool:
    """Whether autocast may compute a part of ``e`` in float32."""
    return any(
        (isinstance(n, ast.Call) and last_name(n.func) in api.AUTOCAST_TO_FLOAT32)
        or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow))
        for n in ast.walk(e)
    )


def _starts(s: ast.stmt) -> tuple[int, int]:
    return s.lineno, s.col_offset
