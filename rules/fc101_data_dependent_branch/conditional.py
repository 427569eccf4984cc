"""A branch whose arms are work, as ``torch.cond``: both arms are in the graph, and the one that is asked for runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Category, Kind, Value
from patcher.facts.zones.scripting import Scripting
from rules.fc101_data_dependent_branch.branches import Branches
from rules.fc101_data_dependent_branch.capturing import Capturing
from rules.fc101_data_dependent_branch.gradients import Gradients
from rules.fc101_data_dependent_branch.layout import follows_layout, reorders
from rules.fc101_data_dependent_branch.shared_storage import SharedStorage


@dataclass(frozen=True)
class Arm:
    """``returned``: the names that hold the arm's results, each with whether it may be a tensor that exists already."""

    returned: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Conditional:
    """``condition`` picks ``arms`` (one: without ``else``), which are given ``operands`` and give ``results``.

    ``spread``: results whose elements may lie in another order in the one case than in the other. ``inner``: branches
    on data in the arms, each of this form as well. ``doubts``: what is taken for granted.
    """

    node: ast.If
    condition: Condition
    operands: tuple[str, ...]
    results: tuple[str, ...]
    arms: tuple[Arm, ...]
    spread: frozenset[str]
    inner: tuple[Conditional, ...]
    doubts: tuple[str, ...]


class _Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """It is no such branch; the text says why."""


class Conditionals(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.branches = facts.ask(Branches)
        self.calls = facts.ask(Calls)
        self.capturing = facts.ask(Capturing)
        self.conditions = facts.ask(Conditions)
        self.gradients = facts.ask(Gradients)
        self.unchanged = facts.ask(Unchanged)
        self._known: dict[ast.If, Conditional | str] = {}

    def of(self, node: ast.If) -> Conditional | str:
        """How ``node`` is written with ``torch.cond``, or why it cannot be."""
        if node not in self._known:
            try:
                self._known[node] = self._of(node)
            except _Refused as refusal:
                self._known[node] = str(refusal)
        return self._known[node]

    def _of(self, node: ast.If) -> Conditional:
        function = self.syntax.function_of(node)
        bodies = [node.body, *([node.orelse] if node.orelse else [])]
        if function is None or any(map(self.syntax.is_elif, (node, *node.orelse[:1]))):
            raise _Refused("it has an `elif`, or stands in no function")
        if not self.conditions.reads_data(node.test):
            raise _Refused("it reads no data")
        doubts: list[str] = []
        condition = self.conditions.take_apart(node.test, doubts)
        if isinstance(condition, str):
            raise _Refused(condition)
        inner: list[Conditional] = []
        within: list[list[Conditional]] = [self._branches_in(body) for body in bodies]
        for body, branches in zip(bodies, within, strict=True):
            captured = (inner.node.test for c in branches for inner in (c, *c.inner))
            why = self.capturing.why_not(body, {n for test in captured for n in ast.walk(test)})
            if isinstance(why, str):
                raise _Refused(why)
            doubts += why.doubts
            inner += branches
        self._asked_again(condition)
        results, operands = self._names(node, bodies)
        given = [b for name in operands if (b := self.branches.bound_before(node, name)) is not None]
        if shared := self.facts.ask(SharedStorage).two_of_one(
            [n for b in bodies for s in b for n in ast.walk(s)], given
        ):
            raise _Refused(shared)
        arms = tuple(
            Arm(tuple((name, self._may_exist(name, body, branches)) for name in results))
            for body, branches in zip(bodies, within, strict=True)
        )
        spread = frozenset(name for name in results if not self._lies_alike(name, node, bodies))
        if not reorders(ast.walk(function)):
            doubts += [f"{_listed(sorted(spread))} lies in memory in the same order in both cases"] if spread else []
            spread = frozenset()
        doubts += self._held(node, bodies, results, operands)
        copied = [name for name in results if self._is_told_from_copy(name, node, bodies, operands)]
        doubts += [f"nobody asks whether {_listed(copied)} is another tensor than before"] if copied else []
        if not self.facts.ask(GradientMode).off(node):
            doubts.append("a parameter that only the arm not taken reads may get a gradient of zeros rather than none")
        if reason := self.facts.ask(Scripting).why(function, widely=True):
            raise _Refused(reason)
        nested = [d for c in inner for d in c.doubts]
        all_inner = tuple(deep for c in inner for deep in (c, *c.inner))
        granted = tuple(dict.fromkeys(doubts + nested))
        return Conditional(node, condition, operands, results, arms, spread, all_inner, granted)

    def _branches_in(self, body: list[ast.stmt]) -> list[Conditional]:
        """The outermost branches on data in an arm: they have to be of this form as well."""
        found: list[Conditional] = []
        stack: list[ast.AST] = list(reversed(body))
        while stack:
            n = stack.pop()
            if isinstance(n, ast.If) and self.conditions.reads_data(n.test) and not self.facts.eager_only(n):
                branch = self.of(n)
                if isinstance(branch, str):
                    raise _Refused(f"the branch on data in line {n.lineno} stays: {branch}")
                found.append(branch)
            else:
                stack.extend(reversed(list(ast.iter_child_nodes(n))))
        return found

    def _asked_again(self, condition: Condition) -> None:
        """The Python part of the test is evaluated twice where it is not met."""
        for e in condition.guard:
            if reason := self.unchanged.why_impure(e):
                raise _Refused(reason)

    # --- names ------------------------------------------------------------------------------------------------------

    def _names(self, node: ast.If, bodies: list[list[ast.stmt]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names that the arms give back, and those that they are given, in the order in which they are bound."""
        function = self.syntax.function_of(node)
        assert function is not None
        flow = self.flow_of(function)
        inside = {n for body in bodies for s in body for n in ast.walk(s)}
        looped = any(isinstance(p, (ast.For, ast.While, ast.AsyncFor)) for p in self.syntax.ancestors(node))
        results, operands = dict[str, None](), dict[str, None]()
        for body in bodies:
            nodes = {n for s in body for n in ast.walk(s)}
            bound = [d for n in _in_order(body) if (d := flow.by_node.get(n)) is not None]
            own = frozenset(bound)
            leaving = flow.outliving(inside)
            for d in bound:
                loads = [n for n in nodes if isinstance(n, ast.Name) and n.id == d.name and n in flow.reaching]
                if any(flow.reaching[n] - own for n in loads):
                    operands[d.name] = None
                    leaving = leaving | {d.name} if looped else leaving
                if d.name in leaving:
                    results[d.name] = None
            if leaving & (flow.captured | flow.shared | flow.deleted) & {d.name for d in bound}:
                raise _Refused("other functions see what the arms assign")
        if not results:
            raise _Refused("the arms assign nothing that is used later")
        for name in results:
            if len(bodies) == 1 or not all(_surely_bound(name, body) for body in bodies):
                operands[name] = None
        for name in operands:
            if self.branches.bound_before(node, name) is None:
                raise _Refused(f"`{name}` may be unbound when the branch is not taken")
        return tuple(results), tuple(operands)

    def _definitions(self, name: str, body: list[ast.stmt]) -> list[Definition]:
        function = self.syntax.function_of(body[0])
        assert function is not None
        by_node = self.flow_of(function).by_node
        return [d for s in body for n in ast.walk(s) if (d := by_node.get(n)) is not None and d.name == name]

    def _may_exist(self, name: str, body: list[ast.stmt], branches: list[Conditional]) -> bool:
        """Whether what ``name`` holds at the end of an arm may be a tensor that was there before, or a view of one.

        What another ``torch.cond`` gives is new.
        """
        given = [c.node for c in branches if name in c.results and c.node in body]
        if not given and not _surely_bound(name, body):
            return True
        inside = {n for node in given for n in ast.walk(node)}
        definitions = [d for d in self._definitions(name, body) if d.node not in inside]
        return any(
            d.how != "assign" or d.path or d.value is None or self.aliasing.aliases(d.value) for d in definitions
        )

    def _lies_alike(self, name: str, node: ast.If, bodies: list[list[ast.stmt]]) -> bool:
        """Whether the elements of ``name`` lie in one order in memory, whichever arm runs."""
        before = self.branches.bound_before(node, name)
        made = [d for body in bodies for d in self._definitions(name, body)]
        held = [self.inference.defined(d) for d in made] + [self.inference.of(b) for b in (before,) if b is not None]
        if any(v.rank is not None and v.rank.base is None and v.rank.offset <= 1 for v in held):
            return True
        values = [d.value for d in made if d.how == "assign" and not d.path and d.value is not None]
        one = [name] if len(bodies) == 1 else [n.id for v in values[:1] for n in ast.walk(v) if isinstance(n, ast.Name)]
        return len(values) == len(made) and any(all(follows_layout(v, n, self._is_scalar) for v in values) for n in one)

    def _is_scalar(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number, or a tensor with no dimension."""
        held = self.inference.of(e)
        return held.is_number or held.is_scalar_tensor

    def _is_told_from_copy(
        self, name: str, node: ast.If, bodies: list[list[ast.stmt]], operands: tuple[str, ...]
    ) -> bool:
        """Whether ``name`` may hold what others hold as well, in one case: there it gets a copy.

        Refuses where the one or the other is changed in place then, or a gradient would not get through the copy.
        """
        function = self.syntax.function_of(node)
        assert function is not None
        before = self.branches.bound_before(node, name) if name in operands else None
        made = [d for body in bodies for d in self._definitions(name, body)]
        values = [*filter(None, [before]), *(d.value for d in made if d.how == "assign" and d.value is not None)]
        held = [*made, *(self.inference.definitions(before) if isinstance(before, ast.Name) else ())]
        uses = {u: d for d in held for u in self.flow_of(function).uses.get(d, ()) if self._comes_after(u, node)}
        mode = self.facts.ask(GradientMode)
        if mode.off(node) and any(not mode.off(u) or isinstance(self.syntax.statement_of(u), ast.Return) for u in uses):
            carrying = (v for v in values if self.aliasing.aliases(v) and self.gradients.carries(v))
            if (v := next(carrying, None)) is not None:
                raise _Refused(f"`{short(v)}` may carry a gradient out of here")
        existing = [v for v in values if not self.aliasing.fresh(v, node, name)]
        sources = [e for v in existing for e in self._given_by(v)]
        for use, d in uses.items() if existing else ():
            if self.aliasing.is_changed_by(use) or self._is_written_by_call(use):
                raise _Refused(f"`{name}` may be changed in place, and may be an existing tensor")
            if reason := self.aliasing.changed_while_used(sources, node, d):
                raise _Refused(reason)
        return bool(existing)

    def _comes_after(self, use: ast.Name, node: ast.If) -> bool:
        """Whether ``use``, which is none of ``node``, may run when that is done."""
        around = list(self.syntax.ancestors(use))
        if node in around:
            return False
        loops = (p for p in self.syntax.ancestors(node) if isinstance(p, (ast.For, ast.AsyncFor, ast.While)))
        return any(loop in around for loop in loops) or (use.lineno, use.col_offset) > (node.lineno, node.col_offset)

    def _is_written_by_call(self, use: ast.Name) -> bool:
        """Whether what a name holds is handed to a call that changes what it is given."""
        outer = self.aliasing.through_views(use)
        parent = self.syntax.parents[outer]
        return isinstance(parent, ast.Call) and outer in self.calls.of(parent).writes

    def _given_by(self, value: ast.expr) -> list[ast.expr]:
        """What was there before and ``value`` may be, or be a view of: what a call was given, say."""
        if isinstance(value, ast.Call):
            return [e for given in self.calls.of(value).gives for e in self._given_by(given)]
        return [value] if self.aliasing.aliases(value) else []

    def _held(
        self, node: ast.If, bodies: list[list[ast.stmt]], results: tuple[str, ...], operands: tuple[str, ...]
    ) -> list[str]:
        """What has to be granted for all of them to be tensors, of one form whichever arm runs."""
        unsure: list[str] = []
        for name in dict.fromkeys((*results, *operands)):
            held: list[Value] = []
            if name in operands and (before := self.branches.bound_before(node, name)) is not None:
                held.append(self.inference.of(before))
            held += [self.inference.defined(d) for body in bodies for d in self._definitions(name, body)]
            if any(v.kind is not Kind.UNKNOWN and not v.is_tensor for v in held):
                raise _Refused(f"`{name}` is no tensor, or not always one")
            if any(v.kind is Kind.UNKNOWN for v in held):
                unsure.append(name)
            if name in results:
                _same_form(name, held)
        doubts = [f"{_listed(unsure)} {'is a tensor' if len(unsure) == 1 else 'are tensors'}"] if unsure else []
        either = _listed(results)
        return [*doubts, f"{either} {'has' if len(results) == 1 else 'have'} one shape and dtype in both cases"]


def _listed(names: tuple[str, ...] | list[str] | dict[str, None]) -> str:
    written = [f"`{n}`" for n in names]
    return " and ".join([", ".join(written[:-1]), written[-1]] if written[2:] else written)


def _in_order(body: list[ast.stmt]) -> Iterator[ast.AST]:
    nodes = [n for s in body for n in ast.walk(s) if isinstance(n, (ast.expr, ast.stmt))]
    return iter(sorted(nodes, key=lambda n: (n.lineno, n.col_offset)))


def _surely_bound(name: str, body: list[ast.stmt]) -> bool:
    """Whether ``name`` gets a value in an arm whatever happens in it."""
    for s in body:
        if isinstance(s, ast.Assign):
            targets = [e for t in s.targets for e in ([*t.elts] if isinstance(t, ast.Tuple) else [t])]
        else:
            targets = [s.target] if isinstance(s, ast.AnnAssign) and s.value is not None else []
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return True
        if isinstance(s, ast.If) and s.orelse and all(_surely_bound(name, arm) for arm in (s.body, s.orelse)):
            return True
        if isinstance(s, ast.With) and _surely_bound(name, s.body):
            return True
    return False


def _same_form(name: str, held: list[Value]) -> None:
    """Refuse where what ``name`` holds is seen to be of different dtypes or ranks."""
    dtypes = [v.dtype for v in held if v.dtype is not None]
    categories = {d.category for d in dtypes} - {Category.UNKNOWN}
    if len(dtypes) < len(held) or any(d.category is Category.UNKNOWN for d in dtypes):
        categories.add(Category.FLOAT)  # as is presumed of a tensor of which nothing is known
    ranks = [v.rank for v in held if v.rank is not None]
    if len(categories) > 1 or any(a.minus(b) for a in ranks for b in ranks):
        raise _Refused(f"`{name}` has another dtype or number of dimensions in the other case")
