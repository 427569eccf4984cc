"""FC802: GELU, written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Operators
from patcher.facts.tables.fusions import presumed
from patcher.rule import Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule
from rules.fc802_hand_gelu.examples import INVALID, VALID

_ARGUMENTS = {"erf": "", "tanh": ', approximate="tanh"'}


class HandGelu(Rule):
    """``0.5 * x * (1 + torch.erf(x / math.sqrt(2)))``, for which PyTorch has ``F.gelu``.

    What it does:
        Writes ``F.gelu(x)`` for the form with ``erf``, and ``F.gelu(x, approximate="tanh")`` for ``0.5 * x * (1 +
        torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))``, in any order and multiplied out or not, also
        where parts of it were given names first, which are taken out.

    Why it breaks compilation:
        It does not: inductor makes one kernel of either. Eagerly each of up to eight steps is a kernel with a rounding
        of its own, so that in bfloat16 eager and compiled results are further apart than those of ``F.gelu``, and the
        steps take several times as long. That is why the rule is off unless it is asked for.

    Fix safety:
        Unsafe: the last bits differ, of outputs and of gradients, in each dtype; the finding says by how much. The
        constants have to be those of the formula to the precision of float32, written down or worked out: ``x /
        1.41421`` is not fixed, as is ``x * torch.sigmoid(1.702 * x)``, which is another function. Not fixed where
        ``x`` changes in between, and where a part of it is used for something else as well.

    References:
        Hendrycks and Gimpel, "Gaussian error linear units" (2016); ``torch.nn.functional.gelu``.
    """

    code = "FC802"
    name = "hand-gelu"
    switch = "gelu"
    triggers = (b"erf", b"tanh", b"Tanh")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: eager time, and other last bits than compiled code has

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a GELU."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "gelu")
        if found is None:
            return
        arguments = _ARGUMENTS[found.form]
        message = f"`F.gelu({found.said('x')}{arguments})`, written out by hand"
        if found.refused:
            yield Finding(node, message, assumption=found.refused)
            return
        code = Code(f"{facts.writing.functional('gelu', node)}({{0}}{arguments})", (found.operands["x"],))
        removed = tuple(ReplaceStatements(run, ()) for run in found.removed)
        fix = Fix((Replace(node, code), *removed), Applicability.UNSAFE)
        yield Finding(node, message, fix, presumed(f"gelu-{found.form}"))

    invalid = INVALID
    valid = VALID
