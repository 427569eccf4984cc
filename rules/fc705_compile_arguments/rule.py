"""FC705: arguments of torch.compile that are rejected or mean something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.placing import tried
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.tables.knobs import knobs_of
from patcher.rule import Applicability, Finding, Fix, Rule, Where
from rules.fc705_compile_arguments.collected import wrong_collected
from rules.fc705_compile_arguments.examples import INVALID, VALID
from rules.fc705_compile_arguments.wrong import Wrong, wrong_arguments

_COMPILE = frozenset({"torch.compile", "torch.nn.Module.compile"})
_EXPECTED = (ast.With, ast.AsyncWith)


class CompileArguments(Rule):
    """An argument of ``torch.compile`` that is rejected or means something else.

    What it does:
        ``dynamic="auto"`` becomes ``None``, ``"true"`` and ``"false"`` what they say; ``mode`` together with
        ``options`` becomes the options of both, ``mode="default"`` or empty ``options`` are left out;
        ``fullgraph="false"`` becomes ``False``; misspelt modes, options and backends what they are meant to be;
        ``text.lower() in "true"``, which holds for ``"t"`` and for nothing, ``text.lower() == "true"``. Reported, and
        left to you: options that this torch does not have.

    Why it breaks compilation:
        ``torch.compile`` raises when it is called, and what catches that goes on eagerly, without a word
        (lerobot#4114); or it compiles in another way than the text says. Which modes, options and backends there
        are was asked of torch 2.11, 2.13 and 2.14; of versions that nobody has asked, only misspellings are reported.

    Fix safety:
        Unsafe: the finding says what is taken to be meant. Where something catches the error that torch.compile raises,
        compiling begins where it did not. Left alone: an error that a test expects (``pytest.raises``).

    References:
        huggingface/lerobot#4114; PyTorch, ``torch.compile``, ``torch._inductor.list_mode_options``.
    """

    code = "FC705"
    name = "compile-arguments"
    costs = ("graph break", "recompilation")
    triggers = (b".compile(", b"import compile")
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report what is wrong with a call that compiles."""
        call = facts.ask(CompileSites).call_at(node)
        knobs = knobs_of(facts.settings.target_torch)
        if call is None or isinstance(tried(node, facts.syntax), _EXPECTED):
            return
        if call.kind != "setting" and call.what in _COMPILE and isinstance(node, ast.Call):
            yield from map(_finding, (*wrong_arguments(call, facts, knobs), *wrong_collected(call, facts)))

    invalid = INVALID

    valid = VALID


def _finding(wrong: Wrong) -> Finding:
    fix = Fix(wrong.edits, Applicability.UNSAFE) if wrong.edits else None
    return Finding(wrong.node, wrong.message, fix, wrong.assumption)
