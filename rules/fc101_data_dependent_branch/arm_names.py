"""What the arms of a branch are given and give back, when each becomes a function of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from rules.fc101_data_dependent_branch.branches import Branches
from rules.fc101_data_dependent_branch.refusal import Refused

_LOOPS = (ast.For, ast.While, ast.AsyncFor)


@dataclass(frozen=True)
class Arms:
    """The arms of ``node``, one or two. ``results``: names that they give; ``operands``: those that they are given.

    ``before``: what each of those names holds above the branch, where it holds something. ``nodes``: all of the arms.
    """

    node: ast.If
    bodies: tuple[list[ast.stmt], ...]
    results: tuple[str, ...]
    operands: tuple[str, ...]
    before: dict[str, ast.expr]
    nodes: tuple[ast.AST, ...]


class ArmNames(Analysis):
    """Names in branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.branches = facts.ask(Branches)

    def of(self, node: ast.If) -> Arms:
        """The arms of ``node``, with the names in the order in which they are bound. Raises Refused."""
        function = self.syntax.function_of(node)
        assert function is not None
        flow = self.flow_of(function)
        bodies = (node.body, *([node.orelse] if node.orelse else []))
        looped = any(isinstance(p, _LOOPS) for p in self.syntax.ancestors(node))
        results, operands = dict[str, None](), dict[str, None]()
        for body in bodies:
            nodes = {n for s in body for n in self.syntax.subtree(s)}
            bound = [d for n in _in_order(nodes) if (d := flow.by_node.get(n)) is not None]
            own, leaving = frozenset(bound), flow.outliving(nodes)
            for d in bound:
                loads = [n for n in nodes if isinstance(n, ast.Name) and n.id == d.name and n in flow.reaching]
                if any(flow.reaching[n] - own for n in loads):
                    operands[d.name] = None
                    leaving = leaving | {d.name} if looped else leaving
                if d.name in leaving:
                    results[d.name] = None
            if {d.name for d in bound} & (flow.shared | flow.deleted | (flow.captured & leaving)):
                raise Refused("other code sees, or deletes, what the arms assign")
        if not results:
            raise Refused("the arms assign nothing that is used later")
        for name in results:
            if len(bodies) == 1 or not all(surely_bound(name, body) for body in bodies):
                operands[name] = None
        before = {name: b for name in (*results, *operands) if (b := self.branches.bound_before(node, name))}
        for name in operands:
            if name not in before:
                raise Refused(f"`{name}` may be unbound when the branch is not taken")
        every = tuple(n for body in bodies for s in body for n in self.syntax.subtree(s))
        return Arms(node, bodies, tuple(results), tuple(operands), before, every)

    def definitions(self, name: str, body: list[ast.stmt]) -> list[Definition]:
        """What binds ``name`` in an arm."""
        function = self.syntax.function_of(body[0])
        assert function is not None
        by_node = self.flow_of(function).by_node
        return [d for s in body for n in self.syntax.subtree(s) if (d := by_node.get(n)) is not None and d.name == name]


def surely_bound(name: str, body: list[ast.stmt]) -> bool:
    """Whether ``name`` gets a value in an arm whatever happens in it."""
    for s in body:
        if isinstance(s, ast.Assign):
            targets = [e for t in s.targets for e in ([*t.elts] if isinstance(t, ast.Tuple) else [t])]
        else:
            targets = [s.target] if isinstance(s, ast.AnnAssign) and s.value is not None else []
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return True
        if isinstance(s, ast.If) and s.orelse and all(surely_bound(name, arm) for arm in (s.body, s.orelse)):
            return True
        if isinstance(s, ast.With) and surely_bound(name, s.body):
            return True
    return False


def _in_order(nodes: Iterable[ast.AST]) -> list[ast.expr | ast.stmt]:
    placed = [n for n in nodes if isinstance(n, (ast.expr, ast.stmt))]
    return sorted(placed, key=lambda n: (n.lineno, n.col_offset))
