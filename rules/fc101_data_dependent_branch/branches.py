"""The arms of a branch: what they assign, what stays inside of them, and what their results hold."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import FunctionNode


@dataclass(frozen=True)
class Assigned:
    """One assignment of an arm."""

    target: ast.expr
    value: ast.expr
    statement: ast.stmt


@dataclass(frozen=True)
class Arm:
    """``temporaries``: assignments of names that nothing outside of the arm reads. ``results``: the others, by text."""

    temporaries: tuple[Assigned, ...] = ()
    results: dict[str, Assigned] = field(default_factory=dict)


class Branches(Analysis):
    """Looks into the arms of an ``if``."""

    def arm(self, body: list[ast.stmt]) -> Arm | str:
        """What ``body`` assigns, or which statement is more than an assignment."""
        temporaries: list[Assigned] = []
        results: dict[str, Assigned] = {}
        for s in body:
            pairs = self._pairs(s)
            if isinstance(pairs, str):
                return pairs
            for target, value in pairs:
                text = ast.unparse(target)
                if text in results or any(ast.unparse(t.target) == text for t in temporaries):
                    return f"`{text}` is assigned twice in one arm"
                if isinstance(target, ast.Name) and self.stays(target, body):
                    temporaries.append(Assigned(target, value, s))
                else:
                    results[text] = Assigned(target, value, s)
        return Arm(tuple(temporaries), results)

    def _pairs(self, s: ast.stmt) -> list[tuple[ast.expr, ast.expr]] | str:
        match s:
            case ast.Pass():
                return []
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                pairs = list(zip(targets, values, strict=True))
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.Expr(value=ast.Constant()):
                return []
            case _:
                return f"the arm holds more than assignments (`{ast.unparse(s).splitlines()[0][:50]}`)"
        changed = [target for target, _ in pairs if not isinstance(target, ast.Name)]
        return f"`{ast.unparse(changed[0])}` is changed in place" if changed else pairs

    def stays(self, target: ast.Name, body: list[ast.stmt]) -> bool:
        """Whether what is assigned here is read in this arm alone, and the rest of the branch does not use the name."""
        function = self.syntax.function_of(target)
        if function is None:
            return False
        flow = self.flow_of(function)
        definition = flow.by_node.get(target)
        inside = {n for s in body for n in ast.walk(s)}
        if definition is None or target.id in flow.captured:
            return False
        if any(use not in inside for use in flow.uses.get(definition, ())):
            return False
        loads = [n for n in inside if isinstance(n, ast.Name) and n.id == target.id and n is not target]
        if any(flow.reaching.get(n) != frozenset({definition}) for n in loads):  # it is read before it is assigned here
            return False
        branch = self.syntax.parents[body[0]]
        return not any(isinstance(n, ast.Name) and n.id == target.id and n not in inside for n in ast.walk(branch))

    def reads(self, *values: ast.expr) -> set[str]:
        """The names that ``values`` read."""
        return {n.id for value in values for n in ast.walk(value) if isinstance(n, ast.Name)}

    def bound_before(self, branch: ast.stmt, name: str) -> ast.expr | None:
        """A name node that reads ``name`` as it is just before ``branch``; None when it may be unbound there."""
        function = self.syntax.function_of(branch)
        if function is None:
            return None
        flow = self.flow_of(function)
        state = flow.before.get(branch, {}).get(name)
        if state is None or any(d.how == "unbound" for d in state.definitions):
            return None
        return self._reader(function, branch, name)

    def _reader(self, function: FunctionNode, branch: ast.stmt, name: str) -> ast.expr:
        """A synthetic load, known to the flow and to the parents as if it stood at ``branch``."""
        node = ast.copy_location(ast.Name(name, ast.Load()), branch)
        flow = self.flow_of(function)
        flow.state[node] = flow.before[branch][name]
        flow.reaching[node] = flow.state[node].definitions
        self.syntax.parents[node] = branch
        return node
