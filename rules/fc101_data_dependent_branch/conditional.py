"""A branch whose arms are work, as ``torch.cond``: both arms are in the graph, and the one that is asked for runs.

Only where a run has seen both answers: whether the arms give tensors of one form, and change nothing else, is what
compiling them and comparing the results shows.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.zones.scripting import Scripting
from rules.fc101_data_dependent_branch.arm_names import ArmNames, Arms, surely_bound
from rules.fc101_data_dependent_branch.refusal import Refused
from rules.fc101_data_dependent_branch.shortcuts import BOTH, operands

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Conditional:
    """``condition`` picks one of ``arms``. ``copied``: for each, whether a result of it may be there before.

    ``inner``: branches on data in the arms, each of this form as well.
    """

    arms: Arms
    condition: Condition
    copied: tuple[bool, ...]
    inner: tuple[Conditional, ...]


class Conditionals(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.conditions = facts.ask(Conditions)
        self.names = facts.ask(ArmNames)
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
        if BOTH not in {seen.truths for seen in map(self.inference.observed, operands(node.test)) if seen is not None}:
            raise Refused("no run has seen both answers")
        self._stands_alone(node, function)
        condition = self.conditions.take_apart(node.test, [])
        if isinstance(condition, str):
            raise Refused(condition)
        self._asked_again(condition)
        within = [self._branches_in(body) for body in (node.body, *([node.orelse] if node.orelse else []))]
        inner = tuple(deep for branches in within for c in branches for deep in (c, *c.inner))
        arms = self.names.of(node)
        copied = tuple(self._is_copied(arms, *each) for each in zip(arms.bodies, within, strict=True))
        if reason := self.facts.ask(Scripting).why(function, widely=True):
            raise Refused(reason)
        return Conditional(arms, condition, copied, inner)

    def _is_copied(self, arms: Arms, body: list[ast.stmt], branches: list[Conditional]) -> bool:
        """Whether a result of an arm may be a tensor that was there before: ``torch.cond`` takes none."""
        given = {name: c.arms.node for c in branches if c.arms.node in body for name in c.arms.results}
        return any(self._may_exist(name, body, given.get(name)) for name in arms.results)

    def _may_exist(self, name: str, body: list[ast.stmt], given: ast.If | None) -> bool:
        """Whether ``name`` may hold one in the end. ``given``: a branch in the arm that makes it a new one."""
        if given is None and not surely_bound(name, body):
            return True
        inside = set(self.syntax.subtree(given)) if given is not None else set()
        definitions = [d for d in self.names.definitions(name, body) if d.node not in inside]
        return any(
            d.how != "assign" or d.path or d.value is None or self.aliasing.aliases(d.value) for d in definitions
        )

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
