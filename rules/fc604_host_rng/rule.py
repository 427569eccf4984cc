"""FC604: random numbers that the host draws in code that gets compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc604_host_rng.examples import INVALID, VALID
from rules.fc604_host_rng.host_random import HostRandom


class HostRng(Rule):
    """A call of ``random`` or ``numpy.random`` in a forward.

    What it does:
        Where what was drawn matters in training only (``self.training and p < self.layerdrop``), or is added to or
        multiplied with a tensor of floats, ``random.random()`` becomes ``random.uniform(0, 1)``, the same number, which
        Dynamo traces. Where another function draws what matters in training only, compiled code draws in training only.
        Eager code draws what it drew.

    Why it breaks compilation:
        The graph breaks at each number that ``random.random`` or ``numpy.random`` gives, used or not; inside of a loop
        over layers the whole frame runs eagerly. Arrays of numpy's, ``random.uniform`` and ``random.randint`` are
        traced. From 2.14 on ``random.random`` is, as ``uniform`` is: told there where a branch, or arithmetic on the
        host, depends on it. ``random.shuffle`` and ``random.sample`` do not break the graph there, but are drawn when
        the code is compiled: each call has the same order, whatever the seed (seen on 2.14.1).

    Fix safety:
        Safe for ``random.random()``: ``uniform(a, b)`` is ``a + (b - a) * random()``. Of other functions unsafe, for
        compiled code only. What is drawn and not used is not drawn any more, so the host's generator is not where it
        was: what is drawn from it later differs. The flag is taken not to change between the draw and its use. A branch
        on a number that was drawn in training is reported and not fixed, and so is what is not known to matter in
        training alone, and whatever draws arrays, positions or choices.

    References:
        LayerDrop in speech models; PyTorch, "Attempted to call function marked as skipped" (graph break GB0007).
    """

    code = "FC604"
    name = "host-rng"
    triggers = (b"random",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it draws from a generator of the host in compiled code."""
        assert isinstance(node, ast.Call)
        draw = facts.ask(HostRandom).of(node)
        if draw is None:
            return
        message = "a random number of the host breaks the graph"
        if facts.ask(HostRandom).is_drawn_once(node):
            message = "compiled code draws this once, when it is compiled: each call has the same"
        if draw.why and not facts.ask(HostRandom).is_first(node):
            return  # once is enough for a function that draws on and on
        if draw.why:
            yield Finding(node, message, assumption=draw.why)
            return
        torch, traced = facts.writing.spelling("torch", node), facts.writing.spelled("random.uniform", node)
        if draw.one and traced is not None:
            yield Finding(node, message, Fix((Replace(node, Code(f"{traced}(0, 1)")),)))
            return
        if draw.flag is None:
            yield Finding(node, message, assumption="random numbers of the host meet a tensor of unknown dtype")
            return
        new = Code(f"{{0}} if {{1}} or not {torch}.compiler.is_compiling() else 0.0", (node, draw.flag))
        assumption = (
            f"compiled code draws nothing in evaluation, as long as `{ast.unparse(draw.flag)}` does not change "
            "before the number is used: what the host draws later is another number"
        )
        yield Finding(node, message, Fix((Replace(node, new),), Applicability.UNSAFE), assumption)

    invalid = INVALID
    valid = VALID
