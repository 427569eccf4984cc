"""A branch on data written with ``torch.cond``: its arms as functions, and which of them runs."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Edit, Enclose, Fix, NameArms, block, stacked
from rules.fc101_data_dependent_branch.conditional import Arm, Conditional, Conditionals
from rules.fc101_data_dependent_branch.written_condition import as_predicate, holes

#: So long may the value of an arm be that is written as a ``lambda``.
_SHORT = 60


def conditional_fix(branch: Conditional, facts: Facts) -> Fix:
    """``branch``, and those in its arms, as ``torch.cond`` in compiled code, and as they were in eager code."""
    return Fix(tuple(_edit(b, facts) for b in (branch, *branch.inner)), Applicability.UNSAFE)


def _edit(branch: Conditional, facts: Facts) -> Edit:
    """Arms of one short assignment are written once more; else they get a name, and are called by both."""
    node, left = branch.node, ", ".join(branch.results)
    compiled, predicate = _asked(branch, facts), as_predicate(branch.condition.tensor)
    cond = facts.writing.spelling("torch.cond", node)
    values = [_short_value(body, branch) for body in (node.body, *([node.orelse] if node.orelse else []))]
    if all(value is not None for value in values):
        given = [f"{{{i}}}{_made(branch, arm, facts)}" for i, arm in enumerate(branch.arms, 1)]
        given += [] if node.orelse else [left + _made(branch, None, facts)]
        arms = [f"lambda: {value}" for value in given]
        chosen = Code(f"{left} = {cond}({{0}}, {', '.join(arms)})", (predicate, *filter(None, values)))
        return Enclose((node,), stacked(block(Code("if {0}:", (compiled,)), [chosen]), Code("else:")))
    names, operands = _names(branch, facts), ", ".join(branch.operands)
    arms = [_called(name, branch, arm, facts) for name, arm in zip(names, branch.arms, strict=True)]
    arms += [] if node.orelse else [_called("", branch, None, facts)]
    handed = f", ({operands}{',' if len(branch.operands) == 1 else ''})" if branch.operands else ""
    lines = ["if {0}:", f"    {left} = {cond}({{1}}, {', '.join(arms)}{handed})"]
    lines += ["elif {2}:", f"    {left} = {names[0]}({operands})"]
    lines += [line for name in names[1:] for line in ("else:", f"    {left} = {name}({operands})")]
    headers = tuple(Code(f"def {name}({operands}):") for name in names)
    results = tuple(Code(f"return {left}") for _ in names)
    return NameArms(node, headers, results, (Code("\n".join(lines), (compiled, predicate, Code("{0}", (node.test,)))),))


def _made(branch: Conditional, arm: Arm | None, facts: Facts) -> str:
    """What is done with the results of ``arm`` (None: there is no such arm) so that ``torch.cond`` takes them.

    None may be what an arm was given, and those of one arm have to lie in memory as those of the other. What
    ``contiguous()`` gives need not, where a dimension has one element.
    """
    if branch.spread:
        return f".clone(memory_format={facts.writing.spelling('torch.contiguous_format', branch.node)})"
    return ".clone()" if arm is None or any(exists for _, exists in arm.returned) else ""


def _called(name: str, branch: Conditional, arm: Arm | None, facts: Facts) -> str:
    """The function that ``torch.cond`` is given for an arm that has that name, or that there is none of."""
    operands, made = ", ".join(branch.operands), _made(branch, arm, facts)
    if not made:
        return name
    given = f"{name}({operands})" if name else f"({', '.join(branch.results)})"
    if len(branch.results) == 1:
        value = (given if name else branch.results[0]) + made
    elif name or branch.spread:
        value = f"tuple(t{made} for t in {given})"
    else:
        value = f"({', '.join(result + made for result in branch.results)})"
    return f"lambda {operands}: {value}" if operands else f"lambda: {value}"


def _short_value(body: list[ast.stmt], branch: Conditional) -> ast.expr | None:
    """What an arm gives that does nothing else."""
    match body:
        case [ast.Assign(targets=[ast.Name()], value=value)] if len(branch.results) == 1:
            short = len(ast.unparse(value)) <= _SHORT and value.lineno == value.end_lineno
            return value if short else None
    return None


def _names(branch: Conditional, facts: Facts) -> list[str]:
    """Names for the arms: after the first result."""
    number = _above(branch, facts) + 1
    told = f"_{number}" if number > 1 else ""
    wishes = [f"{branch.results[0]}_if_{outcome}{told}" for outcome in ("true", "false")]
    return [facts.writing.fresh_local(wish, branch.node) for wish in wishes[: len(branch.arms)]]


def _above(branch: Conditional, facts: Facts) -> int:
    """How many branches above it in its function have the same first result."""
    function = facts.syntax.function_of(branch.node)
    assert function is not None
    found = 0
    for n in ast.walk(function):
        if isinstance(n, ast.If) and n.lineno < branch.node.lineno and facts.syntax.function_of(n) is function:
            other = facts.ask(Conditionals).of(n)
            found += isinstance(other, Conditional) and other.results[0] == branch.results[0]
    return found


def _asked(branch: Conditional, facts: Facts) -> Code:
    """The test for compiled code that gets to the part of the condition which is data."""
    compiling = facts.writing.spelling("torch.compiler.is_compiling", branch.node) + "()"
    guard = branch.condition.guard
    if not guard:
        return Code(compiling)
    if branch.condition.conjunction:
        return Code(f"{compiling} and {holes(len(guard), ' and ')}", guard)
    return Code(f"{compiling} and not ({holes(len(guard), ' or ')})", guard)
