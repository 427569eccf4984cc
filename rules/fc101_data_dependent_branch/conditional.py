"""A branch whose arms are work, as ``torch.cond``: both arms are in the graph, and the one that is asked for runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.zones.scripting import Scripting
from rules.fc101_data_dependent_branch.arm_names import ArmNames, Arms
from rules.fc101_data_dependent_branch.arm_results import ArmResults, listed
from rules.fc101_data_dependent_branch.capturing import Capturing
from rules.fc101_data_dependent_branch.layout import reorders
from rules.fc101_data_dependent_branch.refusal import Refused
from rules.fc101_data_dependent_branch.shared_storage import SharedStorage

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Conditional:
    """``condition`` picks one of ``arms``. ``copied``: for each, whether a result of it may be there before.

    ``spread``: whether elements of a result may lie in another order in the one case than in the other. ``inner``:
    branches on data in the arms, each of this form as well. ``doubts``: what is taken for granted.
    """

    arms: Arms
    condition: Condition
    copied: tuple[bool, ...]
    spread: bool
    inner: tuple[Conditional, ...]
    doubts: tuple[str, ...]


class Conditionals(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.capturing = facts.ask(Capturing)
        self.conditions = facts.ask(Conditions)
        self.names = facts.ask(ArmNames)
        self.results = facts.ask(ArmResults)
        self.shared = facts.ask(SharedStorage)
        self.unchanged = facts.ask(Unchanged)
        self._known: dict[ast.If, Conditional | str] = {}

    def of(self, node: ast.If) -> Conditional | str:
        """How ``node`` is written with ``torch.cond``, or why it cannot be."""
        if node not in self._known:
            try:
                self._known[node] = self._of(node)
            except Refused as refusal:
                self._known[node] = str(refusal)
        return self._known[node]

    def _of(self, node: ast.If) -> Conditional:
        function = self.syntax.function_of(node)
        if function is None or any(map(self.syntax.is_elif, (node, *node.orelse[:1]))):
            raise Refused("it has an `elif`, or stands in no function")
        if not self.conditions.reads_data(node.test):
            raise Refused("it reads no data")
        self._stands_alone(node, function)
        doubts: list[str] = []
        condition = self.conditions.take_apart(node.test, doubts)
        if isinstance(condition, str):
            raise Refused(condition)
        self._asked_again(condition)
        within = [self._branches_in(body) for body in (node.body, *([node.orelse] if node.orelse else []))]
        inner = tuple(deep for branches in within for c in branches for deep in (c, *c.inner))
        asked = {n for c in inner for n in self.syntax.subtree(c.arms.node.test)}
        arms = self.names.of(node)
        doubts += [d for body in arms.bodies for d in self.capturing.doubts(body, asked)]
        self._picks_nothing(arms)
        self._handed(arms)
        spread = self.results.spread(arms)
        told = f"the elements of {listed(spread)} lie in memory in the same order in both cases"
        reordered = reorders(self.syntax.subtree(function))
        doubts += [*self.results.doubts(arms), *([told] if spread and not reordered else [])]
        copied = tuple(self._is_copied(arms, *each) for each in zip(arms.bodies, within, strict=True))
        if reason := self.facts.ask(Scripting).why(function, widely=True):
            raise Refused(reason)
        granted = dict.fromkeys((*doubts, *(d for c in inner for d in c.doubts)))
        return Conditional(arms, condition, copied, bool(spread) and reordered, inner, tuple(granted))

    def _is_copied(self, arms: Arms, body: list[ast.stmt], branches: list[Conditional]) -> bool:
        for name in arms.results:
            given = [c.arms.node for c in branches if name in c.arms.results and c.arms.node in body]
            if self.results.may_exist(name, body, given):
                return True
        return False

    def _stands_alone(self, node: ast.If, function: FunctionNode) -> None:
        """Refuse where something around ``node`` sees an arm that does not come to its end, or is no graph."""
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, _FUNCTIONS):
                break
            if isinstance(parent, ast.Try):
                raise Refused("what an arm has done is seen where it raises: a `try` is around it")
            if isinstance(parent, (ast.With, ast.AsyncWith)) and "suppress" in {
                last_name(i.context_expr.func) for i in parent.items if isinstance(i.context_expr, ast.Call)
            }:
                raise Refused("what an arm has done is seen where it raises: errors are suppressed around it")
        if not self.facts.ask(GradientMode).off(node) and self._is_checkpointed(function):
            raise Refused(f"`{getattr(function, 'name', '')}` is run by `checkpoint`, which takes no `torch.cond`")

    def _is_checkpointed(self, function: FunctionNode) -> bool:
        """Whether a call in this file hands ``function``, or one of its name, to ``torch.utils.checkpoint``."""
        calls = (c for c in self.syntax.by_type[ast.Call] if isinstance(c, ast.Call) and c.args)
        given = (c.args[0] for c in calls if last_name(c.func) in ("checkpoint", "checkpoint_sequential"))
        return any(last_name(e) == getattr(function, "name", "") for e in given)

    def _branches_in(self, body: list[ast.stmt]) -> list[Conditional]:
        """The outermost branches on data in an arm: they have to be of this form as well."""
        found: list[Conditional] = []
        stack: list[ast.AST] = list(reversed(body))
        while stack:
            n = stack.pop()
            if isinstance(n, ast.If) and self.conditions.reads_data(n.test) and not self.facts.eager_only(n):
                branch = self.of(n)
                if isinstance(branch, str):
                    raise Refused(f"the branch on data in line {n.lineno} stays: {branch}")
                found.append(branch)
            else:
                stack.extend(reversed(list(ast.iter_child_nodes(n))))
        return found

    def _asked_again(self, condition: Condition) -> None:
        """The Python part of the test is evaluated twice where it is not met."""
        for e in condition.guard:
            if reason := self.unchanged.why_impure(e):
                raise Refused(reason)

    def _picks_nothing(self, arms: Arms) -> None:
        """Refuse what is picked by a mask that the test asks whether something is set in it."""
        asked = (
            n.func
            for n in self.syntax.subtree(arms.node.test)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
        )
        masks = {ast.unparse(f.value) for f in asked if f.attr in ("any", "all", "sum")}
        for n in arms.nodes:
            if isinstance(n, ast.Subscript) and not masks.isdisjoint(map(ast.unparse, ast.walk(n.slice))):
                raise Refused(f"`{ast.unparse(n)[:50]}` has as many rows as the mask says")

    def _handed(self, arms: Arms) -> None:
        """Refuse tensors that share memory, or that are changed before a backward pass needs them."""
        outside = [*(arms.before[name] for name in arms.operands), *self.shared.from_outside(arms.nodes)]
        if (two := self.shared.two_of_one(outside)) is not None:
            raise Refused(two)
        mode = self.facts.ask(GradientMode)
        for e in outside:
            if reason := mode.why_saved_changes(e, arms.node):
                raise Refused(f"a backward pass needs what the arms read as it was: {reason}")
