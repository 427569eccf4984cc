"""A branch on tensor data as a choice: what each name holds after it, and the proof that both arms can be evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Condition, Conditions, Junction, Leaf, Negation, Tensor
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Kind, Value
from rules.fc101_data_dependent_branch.branches import Arm, Assigned, Branches
from rules.fc101_data_dependent_branch.gradients import Gradients
from rules.fc101_data_dependent_branch.saved_tensors import kept_by


@dataclass(frozen=True)
class Choice:
    """One value, or a choice by a condition: a tensor's (Condition) or a plain Python test (an expression)."""

    value: ast.expr
    condition: Condition | ast.expr | None = None
    orelse: Choice | None = None

    def values(self) -> Iterator[ast.expr]:
        """Every value that can be chosen."""
        yield self.value
        if self.orelse is not None:
            yield from self.orelse.values()

    def python_tests(self) -> Iterator[ast.expr]:
        """The plain tests, those of mixed conditions among them."""
        if isinstance(self.condition, Condition):
            yield from self.condition.guard
        elif self.condition is not None:
            yield self.condition
        if self.orelse is not None:
            yield from self.orelse.python_tests()

    def conditions(self) -> Iterator[Condition]:
        """The tensor conditions, outermost first."""
        if isinstance(self.condition, Condition):
            yield self.condition
        if self.orelse is not None:
            yield from self.orelse.conditions()


@dataclass(frozen=True)
class Merge:
    """What takes the place of a branch.

    ``replaced``: the statements that go. ``temporaries`` come first, under ``guard`` (a Python test that stays an
    ``if``) when there is one. Each of ``results`` is a target (None: returned) and its choice; ``at_once``: they have
    to be assigned together. ``test_first``: the condition has to be evaluated before the temporaries. ``doubts``: what
    has to be granted.
    """

    replaced: tuple[ast.stmt, ...]
    results: tuple[tuple[ast.expr | None, Choice], ...]
    temporaries: tuple[Assigned, ...] = ()
    guard: tuple[ast.expr, ...] = ()
    at_once: bool = False
    test_first: bool = False
    doubts: tuple[str, ...] = ()


class _Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """There is no proof; the text says what is missing."""


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
            if isinstance(node, ast.IfExp):
                merge = self._conditional(node)
            elif node.body and isinstance(node.body[-1], ast.Return):
                merge = self._early_return(node, node.orelse or self.syntax.following(node)[:1])
            else:
                merge = self._statement(node)
        except _Refused as refusal:
            return str(refusal)
        return replace(merge, doubts=tuple(dict.fromkeys(self._doubts)))

    # --- the three forms --------------------------------------------------------------------------------------------

    def _conditional(self, node: ast.IfExp) -> Merge:
        choice = Choice(node.body, self._condition(node.test), Choice(node.orelse))
        self._prove([choice])
        self._stays_as_it_was([choice], (), node)
        self._goes_nowhere(node)
        return Merge((), ((None, choice),))

    def _statement(self, node: ast.If) -> Merge:
        arms, choices = self._arms(node, node)
        order = list(dict.fromkeys(name for arm in arms for name in arm.order))
        in_order = self.branches.in_order(arms, order)
        if not order:
            raise _Refused("the arms assign nothing that is used later")
        if in_order is False:
            raise _Refused("an arm reads both an old and a new value of what it assigns")
        self._prove(list(choices.values()))
        self._stays_as_it_was(list(choices.values()), [t.value for arm in arms for t in arm.temporaries], node)
        for name, choice in choices.items():
            for arm in arms:
                if name in arm.results:
                    self._may_be_merged(node, arm.results[name], choice)
        self._repeatable(list(choices.values()), set(order))
        guard = self._guard(node, choices)
        if guard is not None:
            choices = {n: Choice(c.value, Condition(guard.tensor), c.orelse) for n, c in choices.items()}
        return Merge(
            (node,),
            tuple((_target(arms, name), choices[name]) for name in order),
            tuple(t for arm in arms for t in arm.temporaries),
            guard.guard if guard is not None else (),
            at_once=in_order is None,
            test_first=any(arm.temporaries for arm in arms) and not self._harmless(choices[order[0]]),
        )

    def _guard(self, node: ast.If, choices: dict[str, Choice]) -> Condition | None:
        """The condition when its Python part can stay an ``if`` around the rest: ``a and t`` without another arm."""
        conditions = {c.condition for c in choices.values()}
        condition = conditions.pop()
        if node.orelse or conditions or not isinstance(condition, Condition):
            return None
        return condition if condition.guard and condition.conjunction else None

    def _early_return(self, node: ast.If, rest: list[ast.stmt]) -> Merge:
        if len(rest) != 1 or not isinstance(rest[0], ast.Return):
            raise _Refused("the function goes on after this early return")
        taken, other = node.body[-1], rest[0]
        assert isinstance(taken, ast.Return)
        arm = self._arm(node.body[:-1])
        if arm.results:
            raise _Refused("the arm assigns names that are used outside of it")
        if taken.value is None or other.value is None:
            raise _Refused("one arm returns nothing")
        condition = self._condition(node.test)
        pairs = [(taken.value, other.value)]
        if isinstance(taken.value, ast.Tuple) and isinstance(other.value, ast.Tuple):
            if len(taken.value.elts) != len(other.value.elts):
                raise _Refused("the arms return tuples of different lengths")
            pairs = list(zip(taken.value.elts, other.value.elts, strict=True))
        choices = [Choice(a, condition, Choice(b)) for a, b in pairs]
        self._prove(choices)
        if not all(self.effects.fresh(e, node) for pair in pairs for e in pair):
            raise _Refused("an arm returns an existing tensor, which the caller could tell from a copy")
        self._repeatable(choices, set())
        self._total([t.value for t in arm.temporaries])
        replaced = (node,) if node.orelse else (node, rest[0])
        test_first = bool(arm.temporaries) and not self._harmless(choices[0])
        return Merge(replaced, tuple((None, choice) for choice in choices), arm.temporaries, test_first=test_first)

    # --- arms -------------------------------------------------------------------------------------------------------

    def _arms(self, node: ast.If, first: ast.If) -> tuple[list[Arm], dict[str, Choice]]:
        """All arms of the chain that starts at ``first``, and what every name holds after it."""
        condition: Condition | ast.expr = node.test
        if self.conditions.reads_data(node.test):
            condition = self._condition(node.test)
        elif self.inference.of(node.test).kind is not Kind.PYTHON:
            raise _Refused(f"whether `{ast.unparse(node.test)}` is a tensor is not known")
        arm = self._arm(node.body)
        chained = node.orelse[0] if len(node.orelse) == 1 else None
        if isinstance(chained, ast.If) and self.syntax.is_elif(chained):
            arms, others = self._arms(chained, first)
            self._evaluated_early(chained.test)
        else:
            other = self._arm(node.orelse)
            arms, others = [other], {n: Choice(a.value) for n, a in other.results.items()}
        shared = _temporary_names(arm) & {n for a in arms for n in _temporary_names(a)}
        if shared:
            raise _Refused(f"two arms use the temporary `{min(shared)}`")
        self._total([t.value for t in arm.temporaries])
        choices = {}
        for name in dict.fromkeys([*arm.results, *others]):
            mine = arm.results[name].value if name in arm.results else self._old(name, first, arms)
            choices[name] = Choice(mine, condition, others.get(name) or Choice(self._old(name, first, [arm])))
        return [arm, *arms], choices

    def _arm(self, body: list[ast.stmt]) -> Arm:
        arm = self.branches.arm(body)
        if isinstance(arm, str):
            raise _Refused(arm)
        return arm

    def _old(self, name: str, branch: ast.If, arms: list[Arm]) -> ast.expr:
        """What ``name`` holds when its arm is not taken."""
        target = _target(arms, name)
        if not isinstance(target, ast.Name):
            return target
        before = self.branches.bound_before(branch, name)
        if before is None:
            raise _Refused(f"`{name}` may be unbound when the branch is not taken")
        return before

    def _may_be_merged(self, branch: ast.If, assigned: Assigned, choice: Choice) -> None:
        """An arm that is an existing tensor must not be told from a copy later."""
        target = assigned.target
        if not isinstance(target, ast.Name):
            if not all(map(self.effects.fresh, choice.values())):
                raise _Refused(f"`{ast.unparse(target)}` may be an existing tensor")
            own = self.inference.instance_attribute(target)
            if own is None or self.inference.attribute(*own).trainable or self.inference.sets_by_code(own[0]):
                raise _Refused(f"assigning `{ast.unparse(target)}` may have an effect")
            return
        function = self.syntax.function_of(branch)
        assert function is not None
        definition = self.flow_of(function).by_node.get(target)
        self._told_from_copy(branch, list(choice.values()), definition, target.id)

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
                    raise _Refused(f"`{short(value)}` may carry a gradient out of here")
        existing = [v for v in values if not self.effects.fresh(v, branch, name)]
        if not existing:
            return
        reason = self.effects.escapes(definition, function) if definition is not None else None
        if reason is not None and (definition is None or self._is_changed(definition, function)):
            raise _Refused(reason)
        if (changed := self.effects.changed_while_used(existing, branch, definition)) is not None:
            raise _Refused(changed)
        if reason is not None:
            self._doubts.append(f"nobody tells `{name}` from a copy, or changes it in place: {reason}")

    def _is_changed(self, definition: Definition, function: FunctionNode) -> bool:
        """Whether what ``definition`` binds is changed in place by its name, or read by other functions."""
        flow = self.flow_of(function)
        return definition.name in flow.captured or any(map(self.effects.is_changed_by, flow.uses.get(definition, ())))

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
            raise _Refused("an arm is an existing tensor, which could be told from a copy")
        self._told_from_copy(node, arms, None, None)

    # --- proofs -----------------------------------------------------------------------------------------------------

    def _condition(self, test: ast.expr) -> Condition:
        condition = self.conditions.take_apart(test)
        if isinstance(condition, str):
            raise _Refused(condition)
        return condition

    def _evaluated_early(self, test: ast.expr) -> None:
        """The test of an ``elif`` is evaluated in any case, or as often as there are results."""
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        for part in parts:
            while isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
                part = part.operand
            reason = self._why_not_repeatable(part)
            if reason is not None:
                raise _Refused(reason)

    def _why_not_repeatable(self, test: ast.expr) -> str | None:
        condition = self.conditions.take_apart(test) if self.conditions.reads_data(test) else None
        if isinstance(condition, Condition):
            return self.conditions.why_not_total(condition)
        return condition if isinstance(condition, str) else self.effects.why_not_total(test)

    def _repeatable(self, choices: list[Choice], targets: set[str]) -> None:
        """Python tests are written once for each result, in between the assignments of the others."""
        if len(choices) < 2:
            return
        for choice in choices:
            for test in choice.python_tests():
                reason = self._why_not_repeatable(test)
                if reason is not None:
                    raise _Refused(reason)
                if self.branches.reads(test) & targets:
                    raise _Refused(f"`{short(test)}` reads what the arms assign")

    def _harmless(self, choice: Choice) -> bool:
        """Whether it does not matter when the tensor conditions are evaluated."""
        return all(self.conditions.why_not_total(c) is None for c in choice.conditions())

    def _total(self, values: list[ast.expr]) -> None:
        for value in values:
            reason = self.effects.why_not_total(value)
            if reason is None and not self.facts.ask(GradientMode).off(value):
                reason = self.effects.why_not_smooth(value)
            if reason is not None:
                raise _Refused(reason)

    def _stays_as_it_was(self, choices: list[Choice], further: Sequence[ast.expr], node: ast.AST) -> None:
        """Refuse where something is changed later that a backward pass of what is evaluated anew needs as it was."""
        mode = self.facts.ask(GradientMode)
        if mode.off(node):
            return
        leaves = [leaf for c in choices for condition in c.conditions() for leaf in self._leaves(condition.tensor)]
        values = [v for c in choices for v in c.values()]
        kept = [n for v in (*values, *further) for n in kept_by(v, self._is_number)]
        kept += [leaf for leaf in leaves if self.effects.aliases(leaf)]  # which `torch.where` keeps
        assumed = ""
        for e in kept:
            if self._is_number(e):
                continue
            if reason := mode.why_saved_changes(e, node, by_calls=False):
                raise _Refused(f"a backward pass needs what the arms read as it was: {reason}")
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

    def _is_number(self, e: ast.expr) -> bool:
        return self.inference.of(e).is_number

    def _prove(self, choices: list[Choice]) -> None:
        for choice in choices:
            values = list(choice.values())
            self._total(values)
            if (
                not self.facts.ask(GradientMode).off(values[0])
                and (reason := self.gradients.why_not_alike(values)) is not None
            ):
                raise _Refused(reason)
            for e in values[1:]:
                self._same(values[0], self.inference.of(values[0]), e, self.inference.of(e))

    def _same(self, a: ast.expr, first: Value, b: ast.expr, other: Value) -> None:
        """Both arms must be tensors of one shape and dtype."""
        for e, v in ((a, first), (b, other)):
            if not v.is_tensor:
                what = "a Python value" if v.kind is Kind.PYTHON else "not known to be a tensor"
                raise _Refused(f"`{short(e)}` is {what}")
        if first.dtype is None or other.dtype is None or not first.dtype.same(other.dtype):
            raise _Refused(f"the dtypes of `{short(a)}` and `{short(b)}` are not known to be the same")
        if first.shape is None or first.shape != other.shape:
            raise _Refused(f"the shapes of `{short(a)}` and `{short(b)}` are not known to be the same")


def _target(arms: list[Arm], name: str) -> ast.expr:
    return next(arm.results[name].target for arm in arms if name in arm.results)


def _temporary_names(arm: Arm) -> set[str]:
    return {t.target.id for t in arm.temporaries if isinstance(t.target, ast.Name)}
