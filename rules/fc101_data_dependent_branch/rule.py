"""FC101: a branch on the data of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.checks.describing import Describing
from patcher.facts.effects.conditions import Condition, Conditions, Negation, Tensor
from patcher.facts.syntax.written import short
from patcher.rule import BOTH_SEEN, Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule, block
from rules.fc101_data_dependent_branch.chosen_state import ChosenState, ChosenStates
from rules.fc101_data_dependent_branch.conditional import Conditionals
from rules.fc101_data_dependent_branch.examples import INVALID, VALID
from rules.fc101_data_dependent_branch.merging import Merge, Merging
from rules.fc101_data_dependent_branch.shortcuts import Shortcuts
from rules.fc101_data_dependent_branch.skipped_writes import SkippingTests
from rules.fc101_data_dependent_branch.written_condition import as_tensor, holes


class DataDependentBranch(Rule):
    """An ``if`` (or conditional expression, early return) whose test is a tensor.

    What it does:
        Evaluates both arms and picks the result with ``torch.where``. The condition is evaluated once; a Python part of
        it (``self.training and ...``) stays a Python ``if``. A test that does nothing but skip a write through a mask
        with no place set (``if mask.any(): x[mask] = 0``) is asked in eager code alone: compiled code always writes.
        Where a run has seen both answers of a test that may only save work (``if mask.all(): return x``, ``if not
        mask.any(): mask = None``), compiled code takes the general way. Where the arms only choose which of two tensors
        is kept, in a buffer or a name, and both are made of what the module has (rates for short rows and for long
        ones), what they make ready is done in any case. What is none of these goes into the graph with ``torch.cond``
        where a run has seen both answers: the arms become functions, which eager code calls as well.

    Why it breaks compilation:
        The test needs the tensor's value while Dynamo is tracing, before there is one. The graph breaks there, and
        inside of a loop, ``try`` or user context manager the whole frame is dropped.

    Fix safety:
        Safe for ``torch.where`` when it is proven that both arms can be evaluated on any input (no effect, no error, no
        random numbers) and hold tensors of one shape and dtype; that, unless gradients are off, the arms send gradients
        to the same tensors, and none of the untaken arm can be infinite or NaN; and that, where an arm is an existing
        tensor, the result is not handed on, nor either of them changed in place while it is in use; where it is handed
        on, the merge is unsafe. A condition with one element that is not known to be 0-d is reshaped to ``()``, which
        raises for more elements just as ``if`` does. Activations and configured numbers are taken to be finite where
        gradients are concerned, unless the code asks for what is not (``isnan``). Unsafe where autocast may give the
        arms two dtypes, or ``view`` needs one memory format of both. A tensor of unknown dtype that meets float
        arithmetic in one arm is taken to be floating; otherwise the original's dtype would depend on its data.

        Unsafe in all other forms; the finding says what is assumed. A choice of what a module keeps leaves a third
        tensor in the module, and what is made when it is first needed is made the first time. With ``torch.cond``, what
        only the other arm reads gets a gradient of zeros rather than none, and a GPU still waits for the test
        (docs/results/branches.md says what that is worth).

        An ``elif`` is merged before what stands above it. Not fixed where an arm does more, assigns attributes or
        elements, or where names that the arms assign depend on each other.

    References:
        The rotary-embedding fix of the nanoVLM report; PyTorch, "Data-dependent control flow" (graph break GB0170),
        "Control Flow - Cond".
    """

    code = "FC101"
    name = "data-dependent-branch"
    triggers = (b"if ", b"if(")
    listens_to = (ast.If, ast.IfExp)
    costs = ("graph break",)
    yields_to = ("FC102", "FC711")  # which answer for what only raises
    counts_on = ("FC402",)  # which computes rows of a mask as if all were set

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when its test is a tensor in code that gets compiled."""
        assert isinstance(node, (ast.If, ast.IfExp))
        if not facts.ask(Conditions).reads_data(node.test):
            return
        message = "a branch on tensor data breaks the graph"
        merge, chained = facts.ask(Merging).of(node), isinstance(node, ast.If) and facts.syntax.is_elif(node)
        if isinstance(merge, Merge) and not merge.doubts:
            yield Finding(node, message, _fix(merge, node, facts))
        elif isinstance(node, ast.If) and not chained and (unsafe := _assumed(node, facts)) is not None:
            yield Finding(node, message, *unsafe)
        elif isinstance(merge, Merge):
            yield Finding(node, message, _fix(merge, node, facts), "; ".join(merge.doubts))
        elif chained:
            yield Finding(node, message, assumption=merge)
        else:
            yield _last_resort(node, message, merge, facts)

    invalid = INVALID
    valid = VALID


def _assumed(node: ast.If, facts: Facts) -> tuple[Fix, str] | None:
    """A branch that skips writes, or chooses what is kept; and what is assumed."""
    skipping, regions = facts.ask(SkippingTests), facts.active.issuperset(DataDependentBranch.counts_on)
    compiling = facts.writing.spelling("torch.compiler.is_compiling", node.test)
    if (skipped := skipping.of(node, regions)) is not None:
        code = Code(f"{compiling}() or {{0}}", (skipped,))
        return Fix((Replace(skipped, code),), Applicability.UNSAFE), _NOTHING_SET
    if skipping.going_on(node, regions):
        code = Code(f"not {compiling}() and {{0}}", (node.test,))
        return Fix((Replace(node.test, code),), Applicability.UNSAFE), _NOTHING_SET
    chosen = facts.ask(ChosenStates).of(node)
    return (_chosen(chosen, node, facts), _EITHER) if chosen is not None else None


def _last_resort(node: ast.If | ast.IfExp, message: str, why_not_merged: str, facts: Facts) -> Finding:
    """Both arms go into the graph; else the branch is told of, with the reason that it is not merged."""
    if isinstance(node, ast.If) and facts.ask(Describing).why_not_silent(node) is None:
        return Finding(node, message, assumption="it decides about messages alone (FC602)")
    if (shortcut := _shortcut(node, message, facts)) is not None:
        return shortcut
    fix = facts.ask(Conditionals).fix(node) if isinstance(node, ast.If) else None
    return Finding(node, message, fix, why_not_merged if fix is None else _ONE_FORM)


_NOTHING_SET = (
    "where the mask has no place set, to compute and write through it is no error and changes nothing (gradients may "
    "be zeros in place of none)"
)
_EITHER = (
    "both tensors have one shape, dtype and device, what is made ready can be made in any case, and nobody asks which "
    "of the two is kept"
)
_ONE_FORM = (
    f"both branches give tensors of one form and change nothing else ({BOTH_SEEN}); no gradient is asked of what a "
    "branch draws, or of two results that meet"
)


def _fix(merge: Merge, node: ast.If | ast.IfExp, facts: Facts) -> Fix:
    test = merge.condition.tensor
    if isinstance(node, ast.IfExp):
        _, one, other = merge.results[0]
        edit: Replace | ReplaceStatements = Replace(node, _picked(test, _code(one), _code(other), node, facts))
    else:
        lines, named = _named(merge.condition, len(merge.results) > 1 or merge.test_first, node, facts)
        lines += [Code("{0} = {1}", (t.target, t.value)) for t in merge.temporaries]
        for target, one, other in merge.results:
            picked = _picked(named, _code(one), _code(other), node, facts)
            lines.append(Code("return {0}", (picked,)) if target is None else Code("{0} = {1}", (target, picked)))
        if merge.guard:
            lines = [block(Code(f"if {holes(len(merge.guard), ' and ')}:", merge.guard), lines)]
        edit = ReplaceStatements(merge.replaced, tuple(lines))
    return Fix((edit,), Applicability.UNSAFE if merge.doubts else Applicability.SAFE)


def _code(value: ast.expr) -> Code:
    return Code(value.id) if isinstance(value, ast.Name) else Code("{0}", (value,))


def _named(condition: Condition, named: bool, node: ast.If, facts: Facts) -> tuple[list[Code], str | Tensor]:
    """The statement that names the condition, where it has to be; and its name, or what it is."""
    if not named:
        return [], condition.tensor
    name = facts.writing.fresh_local("_condition", node)
    return [Code(f"{name} = {{0}}", (as_tensor(condition.tensor),))], name


def _picked(test: str | Tensor, one: Code, other: Code, node: ast.AST, facts: Facts) -> Code:
    where = facts.writing.spelling("torch.where", node)
    if isinstance(test, Negation):
        test, one, other = test.part, other, one
    return Code(f"{where}({{0}}, {{1}}, {{2}})", (Code(test) if isinstance(test, str) else as_tensor(test), one, other))


def _shortcut(node: ast.If | ast.IfExp, message: str, facts: Facts) -> Finding | None:
    """Compiled code takes no shortcut that a run has seen both taken and left."""
    found = facts.ask(Shortcuts).of(node)
    if found is None:
        return None
    compiling = facts.writing.spelling("torch.compiler.is_compiling", found.test)
    code = Code(f"{compiling}() or {{0}}" if found.turned else f"not {compiling}() and {{0}}", (found.test,))
    where = f"`{short(found.test)}` is {not found.turned}"
    granted = f"where {where}, the other branch gives the same ({BOTH_SEEN})"
    return Finding(node, message, Fix((Replace(found.test, code),), Applicability.UNSAFE), granted)


def _chosen(chosen: ChosenState, node: ast.If, facts: Facts) -> Fix:
    """What both arms need is made ready in any case; what is kept is picked."""
    calls = any(isinstance(n, ast.Call) for n in ast.walk(node.test))
    lines, test = _named(chosen.condition, calls and bool(chosen.prepared), node, facts)
    lines += [_again(s) for s in chosen.prepared]
    one, other = (Code("{0}", (v,)) for v in chosen.values)
    picked = _picked(test, one, other, node, facts)
    match chosen.keeping:
        case ast.Assign(targets=[target]):
            lines.append(Code("{0} = {1}", (target, picked)))
        case ast.Expr(value=ast.Call(func=func, args=[name, _], keywords=settings)):
            written = "".join(f", {k.arg}={{{i}}}" for i, k in enumerate(settings, 3))
            lines.append(Code(f"{{0}}({{1}}, {{2}}{written})", (func, name, picked, *(k.value for k in settings))))
    return Fix((ReplaceStatements((node,), tuple(lines)),), Applicability.UNSAFE)


def _again(s: ast.stmt) -> Code:
    """A statement that makes something ready, once more."""
    match s:
        case ast.If(test=test, body=body):
            return block(Code("if {0}:", (test,)), [_again(inner) for inner in body])
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            return Code(f"{holes(len(targets), ', ')} = {{{len(targets)}}}", (*targets, value))
        case ast.Assign(targets=[target], value=value):
            return Code("{0} = {1}", (target, value))
    raise AssertionError(ast.unparse(s))
