"""A branch whose arms are work, as ``torch.cond``: both arms are in the graph, and the one that is asked for runs.

Only where a run has seen both answers: whether the arms give tensors of one form, and change nothing else, is what
compiling them and comparing the results shows.
"""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.syntax.tree import FunctionNode
from patcher.rule import Applicability, Code, Fix, NameArms, block, stacked
from rules.fc101_data_dependent_branch.branches import Branches
from rules.fc101_data_dependent_branch.refusal import Refused
from rules.fc101_data_dependent_branch.shortcuts import BOTH, operands
from rules.fc101_data_dependent_branch.written_condition import as_predicate, holes

_LOOPS = (ast.For, ast.While, ast.AsyncFor)


class Conditionals(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.branches = facts.ask(Branches)
        self.conditions = facts.ask(Conditions)

    def fix(self, node: ast.If) -> Fix | None:
        """``node`` with ``torch.cond`` in compiled code, and with its arms as functions in any; None where it stays."""
        condition = self.conditions.take_apart(node.test)
        if isinstance(condition, str) or not self._is_seen(node):
            return None
        bodies = (node.body, *([node.orelse] if node.orelse else []))
        try:
            given, results = self._names(node, bodies)
        except Refused:
            return None
        wishes = [f"{results[0]}_if_{outcome}" for outcome in ("true", "false")]
        names = [self.facts.writing.fresh_local(wish, node) for wish in wishes[: len(bodies)]]
        inside, left = ", ".join(given), ", ".join(results)
        functions = [
            f"lambda {inside}: {_copied(f'{name}({inside})', results)}" if self._may_exist(results, body) else name
            for name, body in zip(names, bodies, strict=True)
        ]
        if not node.orelse:
            copies = ", ".join(f"{name}.clone()" for name in results)
            functions.append(f"lambda {inside}: {copies if len(results) == 1 else f'({copies})'}")
        cond = self.facts.writing.spelling("torch.cond", node)
        handed = f", ({inside}{',' if len(given) == 1 else ''})" if given else ""
        chosen = Code(f"{left} = {cond}({{0}}, {', '.join(functions)}{handed})", (as_predicate(condition.tensor),))
        eager = [Code(f"{left} = {name}({inside})") for name in names]
        written = stacked(
            block(Code("if {0}:", (self._asked(condition, node),)), [chosen]),
            block(Code("elif {0}:", (Code("{0}", (node.test,)),)), eager[:1]),
            *[block(Code("else:"), [other]) for other in eager[1:]],
        )
        headers = tuple(Code(f"def {name}({inside}):") for name in names)
        return Fix((NameArms(node, headers, (Code(f"return {left}"),) * len(names), (written,)),), Applicability.UNSAFE)

    def _is_seen(self, node: ast.If) -> bool:
        """Whether a run has seen both answers, and nothing in or around ``node`` is no graph."""
        function = self.syntax.function_of(node)
        if function is None or any(map(self.syntax.is_elif, (node, *node.orelse[:1]))):
            return False
        if BOTH not in {seen.truths for seen in map(self.inference.observed, operands(node.test)) if seen is not None}:
            return False
        around = self.syntax.ancestors(node)
        if any(isinstance(p, ast.Try) and self.syntax.function_of(p) is function for p in around):
            return False
        inner = (n for s in (*node.body, *node.orelse) for n in self.syntax.subtree(s) if isinstance(n, ast.If))
        return not any(self.conditions.reads_data(n.test) for n in inner)

    def _names(self, node: ast.If, bodies: tuple[list[ast.stmt], ...]) -> tuple[list[str], list[str]]:
        """The names that the arms are given, and those that they give, in the order in which they are bound."""
        function = self.syntax.function_of(node)
        assert function is not None
        flow = self.flow_of(function)
        looped = any(isinstance(p, _LOOPS) for p in self.syntax.ancestors(node))
        results, given = dict[str, None](), dict[str, None]()
        for body in bodies:
            nodes = {n for s in body for n in self.syntax.subtree(s)}
            placed = sorted((n for n in nodes if n in flow.by_node), key=_position)
            own, leaving = frozenset(flow.by_node[n] for n in placed), flow.outliving(nodes)
            for d in (flow.by_node[n] for n in placed):
                loads = (n for n in nodes if isinstance(n, ast.Name) and n.id == d.name and n in flow.reaching)
                if any(flow.reaching[n] - own for n in loads):
                    given[d.name] = None
                    leaving = leaving | {d.name} if looped else leaving
                if d.name in leaving:
                    results[d.name] = None
            if {d.name for d in own} & (flow.shared | flow.deleted | (flow.captured & leaving)):
                raise Refused("other code sees, or deletes, what the arms assign")
        if not results:
            raise Refused("the arms assign nothing that is used later")
        for name in results:
            if len(bodies) == 1 or not all(surely_bound(name, body) for body in bodies):
                given[name] = None
        if any(self.branches.bound_before(node, name) is None for name in given):
            raise Refused("a name may be unbound when the branch is not taken")
        return list(given), list(results)

    def _may_exist(self, results: list[str], body: list[ast.stmt]) -> bool:
        """Whether a result of an arm may be a tensor that was there before: ``torch.cond`` takes none."""
        if not all(surely_bound(name, body) for name in results):
            return True
        function = self.syntax.function_of(body[0])
        assert isinstance(function, FunctionNode)
        by_node = self.flow_of(function).by_node
        made = [by_node[n] for s in body for n in self.syntax.subtree(s) if n in by_node]
        return any(
            d.how != "assign" or d.path or d.value is None or self.aliasing.aliases(d.value)
            for d in made
            if d.name in results
        )

    def _asked(self, condition: Condition, node: ast.If) -> Code:
        """The test for compiled code that gets to the part of the condition which is data."""
        compiling = self.facts.writing.spelling("torch.compiler.is_compiling", node) + "()"
        guard = condition.guard
        if not guard:
            return Code(compiling)
        if condition.conjunction:
            return Code(f"{compiling} and {holes(len(guard), ' and ')}", guard)
        return Code(f"{compiling} and not ({holes(len(guard), ' or ')})", guard)


def surely_bound(name: str, body: list[ast.stmt]) -> bool:
    """Whether ``name`` gets a value in an arm whatever happens in it."""
    for s in body:
        targets = (
            [e for t in s.targets for e in ([*t.elts] if isinstance(t, ast.Tuple) else [t])]
            if isinstance(s, ast.Assign)
            else []
        )
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return True
        if isinstance(s, ast.If) and s.orelse and all(surely_bound(name, arm) for arm in (s.body, s.orelse)):
            return True
        if isinstance(s, ast.With) and surely_bound(name, s.body):
            return True
    return False


def _copied(call: str, results: list[str]) -> str:
    return f"{call}.clone()" if len(results) == 1 else f"tuple(t.clone() for t in {call})"


def _position(n: ast.AST) -> tuple[int, int]:
    return (n.lineno, n.col_offset) if isinstance(n, (ast.expr, ast.stmt)) else (0, 0)
