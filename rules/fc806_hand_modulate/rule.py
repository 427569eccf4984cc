"""FC806: modulation (adaLN), written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Operators
from patcher.facts.tables.fusions import times
from patcher.rule import Finding, Rule
from rules.fc806_hand_modulate.examples import INVALID, VALID


class HandModulate(Rule):
    """``x * (1 + scale) + shift``, the modulation of adaptive layer norms (adaLN).

    What it does:
        Reports it, with how long it takes by hand and as ``torch.addcmul(shift, x, 1 + scale)``, as measured.

    Why it breaks compilation:
        It does not: inductor makes one kernel of it, with the norm before it. Eagerly it is three kernels, and as
        ``addcmul`` two; whether that pays depends on the device, and with gradients it hardly does on a CPU. The rule
        is off unless it is asked for.

    Fix safety:
        There is no fix: ``addcmul`` rounds in another way, and gains little. ``python benchmarks/fusions.py modulate``
        measures it on a CPU.

    References:
        Peebles and Xie, "Scalable diffusion models with transformers" (2023); ``torch.addcmul``.
    """

    code = "FC806"
    name = "hand-modulate"
    switch = "modulate"
    triggers = (b"1 +", b"1.0 +", b"+ 1", b"1+", b"+1")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: eager time

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a modulation."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "modulate")
        if found is not None:
            message = f"`{found.said('x')}` is scaled and shifted: by hand it takes {times('modulate')} as `addcmul`"
            yield Finding(node, message, assumption="nobody has measured that it pays on your device")

    invalid = INVALID
    valid = VALID
