"""FC101: a branch on the data of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.describing import Describing
from patcher.facts.effects.conditions import Condition, Conditions, Negation
from patcher.facts.syntax.written import short
from patcher.rule import (
    BOTH_SEEN,
    Applicability,
    Code,
    Cost,
    Example,
    Finding,
    Fix,
    NearMiss,
    Replace,
    ReplaceStatements,
    Rule,
    block,
)
from rules.fc101_data_dependent_branch.chosen_state import ChosenState, ChosenStates
from rules.fc101_data_dependent_branch.conditional import Conditional, Conditionals
from rules.fc101_data_dependent_branch.conditional_source import conditional_fix
from rules.fc101_data_dependent_branch.examples import INVALID, VALID
from rules.fc101_data_dependent_branch.merging import Choice, Merge, Merging
from rules.fc101_data_dependent_branch.shortcuts import Shortcuts
from rules.fc101_data_dependent_branch.skipped_writes import SkippedWrites, SkippingTests
from rules.fc101_data_dependent_branch.written_condition import as_tensor, holes


class DataDependentBranch(Rule):
    """An ``if`` (or ``elif``, conditional expression, early return) whose test is a tensor.

    What it does:
        Evaluates both arms and picks the result with ``torch.where``. The condition is evaluated once; a Python part of
        it (``self.training and ...``) stays a Python ``if``. A test that does nothing but skip a write through a mask
        with no place set (``if mask.any(): x[mask] = 0``) is left to eager code: compiled code writes nothing. Where a
        run has seen both answers of a test that may only save work (``if mask.all(): return x``, ``if not mask.any():
        mask = None``), compiled code takes the general way; ``optimize`` keeps that where changed inputs give the same.
        Where the arms only choose which of two tensors a module keeps, in a buffer or a name, and both are made of what
        the module has (rates for short rows and for long ones), what they make ready is done in any case.
        What is none of these goes into the graph with ``torch.cond`` where a run has seen both answers: both arms are
        in it, and the one that is asked for runs. Arms of one short assignment are written once more; longer ones
        become functions where they stand, which eager code calls as well. Branches on data in an arm go along.

    Why it breaks compilation:
        The test needs the tensor's value while Dynamo is tracing, before there is one. The graph ends there, and inside
        of a loop, ``try`` or user context manager the whole frame is dropped.

    Fix safety:
        Safe when it is proven that both arms, and the tests of an ``elif``, can be evaluated on any input (no effect,
        no error, no random numbers) and hold tensors of one shape and dtype; that, unless gradients are off, the arms
        send gradients to the same tensors, and none of the untaken arm can be infinite or NaN; and that, where an arm
        is an existing tensor, the result is not handed on, nor either of them changed in place while it is in use;
        where it is handed on, the merge is unsafe. A condition with one element that is not known to be 0-d is reshaped
        to ``()``, which raises for more elements just as ``if`` does. Activations and configured numbers are taken to
        be finite where gradients are concerned. A tensor of unknown dtype that meets float arithmetic in one arm is
        taken to be floating; otherwise the original's dtype would depend on its data. What is skipped is safe where it
        is proven that writing nothing is no error and leaves gradients as they were; else, and always for the general
        way and for the choice of what a module keeps, the finding says what is taken for granted. That choice leaves a
        third tensor in the module, and what is made when it is first needed is made the first time: both can be seen
        from outside. A module that moves to another device after its first call may hold one of the two tensors on the
        old one, which raises then. ``torch.cond`` is never safe: that both arms give tensors of one form and change
        nothing else is taken for granted; compiling raises where it is not so, and ``optimize`` compares the results.
        What an arm may hand on as it was is copied. What only the other arm reads gets a gradient of zeros rather than
        none; the backward pass draws other random numbers. A GPU still waits for the test, and with
        ``mode="reduce-overhead"`` the graph is cut there; what is gained is that one graph holds all, also with
        ``fullgraph=True`` and ``torch.export`` (docs/results/branches.md says what that is worth). Anything else is
        reported and left alone.

    References:
        The rotary-embedding fix of the nanoVLM report; PyTorch, "Data-dependent control flow" (graph break GB0170),
        "Control Flow - Cond".
    """

    code: ClassVar[str] = "FC101"
    name: ClassVar[str] = "data-dependent-branch"
    triggers: ClassVar[tuple[bytes, ...]] = (b"if ", b"if(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.If, ast.IfExp)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    yields_to: ClassVar[tuple[str, ...]] = ("FC102", "FC711")  # which answer for what only raises
    counts_on: ClassVar[tuple[str, ...]] = ("FC402",)  # which computes rows of a mask as if all were set

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when its test is a tensor in code that gets compiled."""
        assert isinstance(node, (ast.If, ast.IfExp))
        if not facts.ask(Conditions).reads_data(node.test):
            return
        if isinstance(node, ast.If) and facts.syntax.is_elif(node):
            if not _is_merged_above(node, facts):
                yield Finding(node, "a branch on tensor data ends the graph", assumption=_ELIF)
            return
        merge = facts.ask(Merging).of(node)
        message = "a branch on tensor data ends the graph"
        if isinstance(merge, Merge) and not merge.doubts:
            yield Finding(node, message, _fix(merge, node, facts))
            return
        skipped = None
        if isinstance(node, ast.If):
            skipped = facts.ask(SkippingTests).of(node, regions=facts.active.issuperset(self.counts_on))
        if skipped is not None:
            granted = "taken for granted: " if skipped.doubts else ""
            yield Finding(node, message, _unskipped(skipped, facts), granted + "; ".join(skipped.doubts))
        elif (chosen := _choice_of(node, facts)) is not None:
            yield Finding(node, message, _chosen(chosen, node, facts), "taken for granted: " + "; ".join(chosen.doubts))
        elif isinstance(merge, Merge):
            yield Finding(node, message, _fix(merge, node, facts), "taken for granted: " + "; ".join(merge.doubts))
        else:
            yield _last_resort(node, message, merge, facts)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _last_resort(node: ast.If | ast.IfExp, message: str, why_not_merged: str, facts: Facts) -> Finding:
    """Both arms go into the graph; else the branch is told of, with the reason that it is not merged."""
    if isinstance(node, ast.IfExp):
        return _shortcut(node, message, facts) or Finding(node, message, assumption=why_not_merged)
    if facts.ask(Describing).why_not_silent(node) is None:
        return Finding(node, message, assumption="it decides about messages alone (FC602)")
    if (around := _captured_with(node, facts)) is not None:
        return Finding(node, message, assumption=f"it goes into the graph with the branch in line {around.lineno}")
    if (shortcut := _shortcut(node, message, facts)) is not None:
        return shortcut
    branch = facts.ask(Conditionals).of(node)
    if isinstance(branch, str):
        return Finding(node, message, assumption=why_not_merged)
    return Finding(node, message, conditional_fix(branch, facts), _ONE_FORM)


def _captured_with(node: ast.If, facts: Facts) -> ast.If | None:
    """The branch in an arm of which ``node`` stands, and which takes it along."""
    for parent in facts.syntax.ancestors(node):
        branch = facts.ask(Conditionals).of(parent) if isinstance(parent, ast.If) else None
        if isinstance(branch, Conditional) and any(inner.arms.node is node for inner in branch.inner):
            return branch.arms.node
    return None


_ONE_FORM = (
    f"taken for granted: both arms give tensors of one form and change nothing else ({BOTH_SEEN}); no "
    "gradient is asked of what an arm draws, or of two results that meet"
)
#: Why an ``elif`` that is not merged with the ``if`` above it stays.
_ELIF = "it is the `elif` of an `if` that stays"


def _is_merged_above(node: ast.If, facts: Facts) -> bool:
    """Whether an ``if`` that ``node`` is an ``elif`` of reads data as well, and becomes one choice with it."""
    above: ast.AST = node
    while facts.syntax.is_elif(above):
        above = facts.syntax.parents[above]
        assert isinstance(above, ast.If)
        if facts.ask(Conditions).reads_data(above.test) and not isinstance(facts.ask(Merging).of(above), str):
            return True
    return False


def _fix(merge: Merge, node: ast.If | ast.IfExp, facts: Facts) -> Fix:
    write = _Writer(facts.writing.spelling("torch.where", node))
    if isinstance(node, ast.IfExp):
        edit: Replace | ReplaceStatements = Replace(node, write.choice(merge.results[0][1]))
    else:
        edit = ReplaceStatements(merge.replaced, tuple(write.statements(merge, facts)))
    return Fix((edit,), Applicability.UNSAFE if merge.doubts else Applicability.SAFE)


def _unskipped(skipped: SkippedWrites, facts: Facts) -> Fix:
    """Compiled code writes nothing where eager code skips writing."""
    compiling = facts.writing.spelling("torch.compiler.is_compiling", skipped.test)
    code = Code(f"{compiling}() or {{0}}", (skipped.test,))
    how = Applicability.UNSAFE if skipped.doubts else Applicability.SAFE
    return Fix((Replace(skipped.test, code),), how)


def _shortcut(node: ast.If | ast.IfExp, message: str, facts: Facts) -> Finding | None:
    """Compiled code takes no shortcut that a run has seen both taken and left."""
    found = facts.ask(Shortcuts).of(node)
    if found is None:
        return None
    compiling = facts.writing.spelling("torch.compiler.is_compiling", found.test)
    code = Code(f"{compiling}() or {{0}}" if found.turned else f"not {compiling}() and {{0}}", (found.test,))
    where = f"`{short(found.test)}` is {not found.turned}"
    granted = f"taken for granted: where {where}, the other way gives the same ({BOTH_SEEN})"
    return Finding(node, message, Fix((Replace(found.test, code),), Applicability.UNSAFE), granted)


def _choice_of(node: ast.If | ast.IfExp, facts: Facts) -> ChosenState | None:
    return facts.ask(ChosenStates).of(node) if isinstance(node, ast.If) else None


def _chosen(chosen: ChosenState, node: ast.AST, facts: Facts) -> Fix:
    """What both arms need is made ready in any case; what is kept is picked."""
    write = _Writer(facts.writing.spelling("torch.where", node))
    assert isinstance(node, ast.If)
    return Fix((ReplaceStatements((node,), tuple(write.kept(chosen, facts, node))),), Applicability.UNSAFE)


class _Writer:
    """Writes a merge down. ``names``: conditions that several results need, and the name that each was given."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.names: dict[Condition, str] = {}

    def statements(self, merge: Merge, facts: Facts) -> list[Code]:
        lines = []
        if len(merge.results) > 1 or merge.test_first:
            for condition in dict.fromkeys(c for _, choice in merge.results for c in choice.conditions()):
                self.names[condition] = name = facts.writing.fresh_local("_condition", merge.replaced[0])
                lines.append(Code(f"{name} = {{0}}", (as_tensor(condition.tensor),)))
        lines += [Code("{0} = {1}", (t.target, t.value)) for t in merge.temporaries]
        targets = [target for target, _ in merge.results if target is not None]
        values = [self.choice(choice) for _, choice in merge.results]
        if not targets:
            lines.append(_joined("return ", values))
        elif merge.at_once:
            lines.append(_joined("", targets, " = ", values))
        else:
            lines += [Code("{0} = {1}", pair) for pair in zip(targets, values, strict=True)]
        if merge.guard:
            lines = [block(Code(f"if {holes(len(merge.guard), ' and ')}:", merge.guard), lines)]
        return lines

    def kept(self, chosen: ChosenState, facts: Facts, node: ast.If) -> list[Code]:
        lines = []
        if chosen.test_first:
            self.names[chosen.condition] = name = facts.writing.fresh_local("_condition", node)
            lines.append(Code(f"{name} = {{0}}", (as_tensor(chosen.condition.tensor),)))
        lines += [_again(s) for s in chosen.prepared]
        for one, other in chosen.kept:
            picked = self.merged(chosen.condition, Code("{0}", (one.value,)), Code("{0}", (other.value,)))
            lines.append(_keeping(one.statement, picked))
        return lines

    def choice(self, choice: Choice) -> Code:
        named_value = isinstance(choice.value, ast.Name)
        value = Code(choice.value.id) if named_value else Code("{0}", (choice.value,))  # type: ignore[attr-defined]
        if choice.condition is None or choice.orelse is None:
            return value
        orelse = self.choice(choice.orelse)
        if isinstance(choice.condition, ast.expr):
            return Code("{0} if {1} else {2}", (value, choice.condition, orelse))
        merged = self.merged(choice.condition, value, orelse)
        guard, conjunction = choice.condition.guard, choice.condition.conjunction
        if not guard:
            return merged
        test = Code(holes(len(guard), " and " if conjunction else " or "), guard)
        return Code("{0} if {1} else {2}", (merged, test, orelse) if conjunction else (value, test, merged))

    def merged(self, condition: Condition, value: Code, orelse: Code) -> Code:
        name, tensor = self.names.get(condition), condition.tensor
        if name is None and isinstance(tensor, Negation):
            tensor, value, orelse = tensor.part, orelse, value
        test = Code(name) if name else as_tensor(tensor)
        return Code(f"{self.where}({{0}}, {{1}}, {{2}})", (test, value, orelse))


def _joined(before: str, first: Sequence[ast.expr | Code], between: str = "", then: Sequence[Code] = ()) -> Code:
    template = before + holes(len(first), ", ") + between + holes(len(then), ", ", len(first))
    return Code(template, (*first, *then))


def _again(s: ast.stmt) -> Code:
    """A statement that makes something ready, once more."""
    match s:
        case ast.If(test=test, body=body):
            return block(Code("if {0}:", (test,)), [_again(inner) for inner in body])
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            return _joined("", targets, " = ", [Code("{0}", (value,))])
        case ast.Assign(targets=[target], value=value):
            return Code("{0} = {1}", (target, value))
    raise AssertionError(ast.unparse(s))


def _keeping(s: ast.Assign | ast.Expr, picked: Code) -> Code:
    """``s`` with another tensor to keep."""
    if isinstance(s, ast.Assign):
        return Code("{0} = {1}", (s.targets[0], picked))
    call = s.value
    assert isinstance(call, ast.Call)
    settings = [(f"{k.arg}=", k.value) for k in call.keywords]
    parts: list[tuple[str, ast.expr | Code]] = [
        ("", call.args[0]),
        ("", picked),
        *[("", e) for e in call.args[2:]],
        *settings,
    ]
    written = ", ".join(f"{name}{{{i}}}" for i, (name, _) in enumerate(parts, 1))
    return Code(f"{{0}}({written})", (call.func, *(part for _, part in parts)))
