"""FC613: a bar that shows how far a loop is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from patcher.facts import Facts
from patcher.rule import Code, Enclose, Finding, Fix, Replace, Rule
from rules.fc613_progress_bar.bars import Bars
from rules.fc613_progress_bar.examples import INVALID, VALID


class ProgressBar(Rule):
    """``for t in tqdm(steps):``: a bar for people, around what compiled code goes through.

    What it does:
        Lets compiled code go through the items themselves, ``for t in (steps if torch.compiler.is_compiling() else
        tqdm(steps)):``, and leaves what the bar is told (``bar.set_postfix(...)``) to where there is one. A bar in a
        loop that breaks as it is, or beside such a loop, is not fixed: the function would run eagerly as before.

    Why it breaks compilation:
        Dynamo does not trace ``tqdm``. The graph breaks where the bar is made, and since the loop takes its items from
        it, the whole function falls back to eager: a sampler of a diffusion model runs eagerly, with a graph for each
        step.

    Fix safety:
        Safe for what the code computes: a bar hands on the items that it is given, in their order. Only where the bar
        is gone through, told what to show, and nothing else: what reads ``bar.n``, hands the bar on or holds it in a
        ``with`` is reported and not fixed, and so is one that is given what may change something. Compiled code shows
        no bar, so that what it is told cannot fail there. An iterator that is left by ``break`` and gone on with goes
        on behind the last item that was taken, with a bar around it and without; one that nothing else holds is closed
        there, either way.

    References:
        PyTorch, "Attempted to call function marked as skipped" (graph break GB0007) and "Attempted to inline function
        marked as skipped" (GB0008).
    """

    code = "FC613"
    name = "progress-bar"
    triggers = (b"tqdm",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it makes a bar in compiled code."""
        assert isinstance(node, ast.Call)
        bar = facts.ask(Bars).of(node)
        if bar is None or facts.eager_only(node):
            return
        message = "a progress bar is not traced: graph break, and the loop over it runs eagerly"
        compiling = facts.writing.spelled("torch.compiler.is_compiling", node)
        if bar.reason or compiling is None:
            yield Finding(node, message, assumption=bar.reason or "`torch` is not imported above it")
            return
        holes = ", ".join(f"{{{n}}}" for n in range(len(bar.items)))
        items = Code(f"range({holes})" if bar.counted else "{0}", bar.items)
        without = Replace(node, Code(f"{{0}} if {compiling}() else {{1}}", (items, node)))
        told = Code(f"if isinstance({{0}}, {bar.kind}):")  # what compiled code has left may run on in eager code
        shown = (Enclose((facts.syntax.statement_of(t),), replace(told, parts=(t,))) for t in bar.told)
        yield Finding(node, message, Fix((without, *shown), only_loop=True))

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` makes a bar."""
        return isinstance(node, ast.Call) and facts.ask(Bars).of(node) is not None

    invalid = INVALID
    valid = VALID
