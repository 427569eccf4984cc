"""FC705: arguments of torch.compile, and settings, that are rejected or mean something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.compiling.placing import tried
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.tables.knobs import knobs_of
from patcher.facts.values.compile_calls import CompileCall
from patcher.rule import Applicability, Cost, Example, Finding, Fix, NearMiss, Rule, Where
from rules.fc705_compile_arguments.collected import wrong_collected
from rules.fc705_compile_arguments.examples import INVALID, VALID
from rules.fc705_compile_arguments.settings import wrong_settings
from rules.fc705_compile_arguments.wrong import Wrong, wrong_arguments

_COMPILE = frozenset({"torch.compile", "torch.nn.Module.compile"})
_EXPECTED = (ast.With, ast.AsyncWith)


class CompileArguments(Rule):
    """An argument of ``torch.compile``, or a setting, that is rejected or means something else.

    What it does:
        ``dynamic="auto"`` becomes ``None``, ``"true"`` and ``"false"`` what they say; ``mode`` together with
        ``options`` becomes the options of both, ``mode="default"`` or empty ``options`` are left out;
        ``fullgraph="false"`` becomes ``False``; misspelt modes, options and backends what they are meant to be;
        ``text.lower() in "true"``, which holds for ``"t"`` and for nothing, ``text.lower() == "true"``; a mode,
        backend or options without their name get it. Of two neighbouring assignments to one setting by two of its
        names (``cache_size_limit`` is ``recompile_limit``) the last one stays. Reported, and left to you: arguments
        and settings that this torch does not have, and a ``mode`` that a backend ignores.

    Why it breaks compilation:
        ``torch.compile`` raises when it is called, and what catches that goes on eagerly, without a word
        (lerobot#4114); or it compiles in another way than the text says. Which modes, options, backends and settings
        there are was asked of torch 2.11, 2.13 and 2.14; of versions that nobody has asked, only misspellings are
        reported.

    Fix safety:
        Safe is what torch.compile always rejects and can be meant in one way only (``dynamic`` as a text or a number;
        ``mode`` with ``options``), where nothing catches the error: no run gets past it. That is an exception to
        what safe means elsewhere, for the original raises and the patched code does not. Safe is also the one of
        two neighbouring assignments that has no effect. All else is unsafe: the finding says what is taken to be
        meant, or that something catches the error, and compiling begins where it did not.

    References:
        huggingface/lerobot#4114; PyTorch, ``torch.compile``, ``torch._inductor.list_mode_options``.
    """

    code: ClassVar[str] = "FC705"
    name: ClassVar[str] = "compile-arguments"
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "recompilation")
    triggers: ClassVar[tuple[bytes, ...]] = (b".compile(", b"import compile", b"_dynamo", b"_inductor", b"_functorch")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call, ast.Assign)
    where: ClassVar[Where] = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report what is wrong with a call that compiles, or that sets how."""
        call = facts.ask(CompileSites).call_at(node)
        knobs = knobs_of(facts.settings.target_torch)
        if call is None or isinstance(tried(node, facts.syntax), _EXPECTED):
            return
        if call.kind == "setting":
            found = [*wrong_settings(call, facts, knobs)]
        elif call.what in _COMPILE and isinstance(node, ast.Call):
            found = [*wrong_arguments(call, facts, knobs), *wrong_collected(call, facts)]
        else:
            return
        for wrong in found:
            yield _finding(wrong, call, facts)

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _finding(wrong: Wrong, call: CompileCall, facts: Facts) -> Finding:
    if not wrong.edits:
        return Finding(wrong.node, wrong.message, assumption=wrong.assumption)
    assumption = wrong.assumption
    safe = wrong.plain
    if wrong.rejected and safe:
        caught = _why_caught(call, facts)
        safe = not caught
        assumption = f"{assumption}; {caught}" if caught else ""
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return Finding(wrong.node, wrong.message, Fix(wrong.edits, applicability), "" if safe else assumption)


def _why_caught(call: CompileCall, facts: Facts) -> str:
    """Why some run may get past the error; "" when none does."""
    if call.kind == "factory" or call.argument("disable") is not None or call.argument("**") is not None:
        return "it may never be asked to compile"
    if facts.ask(CompileSites).replaced:
        return "another function is put in the place of torch.compile"
    statement = facts.syntax.statement_of(call.node)
    why = facts.ask(Caught).why(statement, ["RuntimeError", "AssertionError"], around=True)
    return f"{why}, and goes on without compiling" if why else ""
