"""FC807: rotary position embeddings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Operators
from patcher.facts.tables.fusions import times
from patcher.rule import Finding, Rule
from rules.fc807_hand_rope.examples import INVALID, VALID

_FORMS = {
    "halves": "halves (`x * cos + rotated(x) * sin`)",
    "pairs": "pairs (`x * cos + rotated(x) * sin`, interleaved)",
    "complex": "complex numbers",
}


class HandRope(Rule):
    """Rotary position embeddings, in one of the three forms that they are usually written in.

    What it does:
        Reports them, and which form it is: halves that change places, neighbours that do, complex numbers.

    Why it breaks compilation:
        It does not, and PyTorch has no operator for it. Inductor makes a kernel of the forms with real numbers, and
        calls PyTorch's own for complex ones. A device that has a kernel for it wants to know the form. The rule is off
        unless it is asked for.

    Fix safety:
        There is no fix: pairs of real numbers in the place of complex ones take several times as long on a CPU, as
        measured, and halves and pairs are different functions of the same weights.

    References:
        Su et al., "RoFormer" (2021); ``torch.view_as_complex``.
    """

    code = "FC807"
    name = "hand-rope"
    switch = "rope"
    triggers = (b"torch.cat", b"torch.stack", b"view_as_real", b"cat(", b"stack(")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: what a device may have a kernel for

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a rotary embedding."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "rope")
        if found is None:
            return
        message = f"rotary position embedding of `{found.said('x')}`, in the form of {_FORMS[found.form]}"
        if found.form == "complex":
            message += f": it takes {times('rope-complex')} as with pairs of real numbers"
        yield Finding(node, message, assumption="PyTorch has no operator for it")

    invalid = INVALID
    valid = VALID
