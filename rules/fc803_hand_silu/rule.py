"""FC803: SiLU, written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Operators
from patcher.facts.tables.fusions import presumed
from patcher.rule import Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule
from rules.fc803_hand_silu.examples import INVALID, VALID


class HandSilu(Rule):
    """``x * torch.sigmoid(x)``, for which PyTorch has ``F.silu``.

    What it does:
        Writes ``F.silu(x)`` for ``x * torch.sigmoid(x)``, in any order, as functions,
        methods or an ``nn.Sigmoid``, also where the gate was given a name first.

    Why it breaks compilation:
        It does not: inductor makes one kernel of either. Eagerly each step is a kernel with a rounding of its own, so
        that in bfloat16 eager and compiled results are further apart than those of ``F.silu``, and the steps take
        longer. That is why the rule is off unless it is asked for.

    Fix safety:
        Unsafe: the last bits differ, of outputs and of gradients, in each dtype; the finding says by how much. In
        float32 ``x / (1 + torch.exp(-x))`` has NaN for a gradient where ``exp`` overflows, and ``F.silu`` has 0.
        Not fixed where the factor is scaled (``x * torch.sigmoid(1.702 * x)``), where ``x`` changes in between, and
        where the gate is used for something else as well. ``F.silu`` refuses integers.

    References:
        Elfwing et al., "Sigmoid-weighted linear units" (2017); ``torch.nn.functional.silu``.
    """

    code = "FC803"
    name = "hand-silu"
    switch = "silu"
    triggers = (b"sigmoid", b"Sigmoid", b"expit")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: eager time, and other last bits than compiled code has

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is ``x * sigmoid(x)``."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "silu")
        if found is None:
            return
        message = f"`F.silu({found.said('x')})`, written out by hand"
        if found.refused:
            yield Finding(node, message, assumption=found.refused)
            return
        spelled = facts.writing.functional("silu", node)
        code = Code(f"{spelled}({{0}})", (found.operands["x"],))
        removed = tuple(ReplaceStatements(run, ()) for run in found.removed)
        yield Finding(node, message, Fix((Replace(node, code), *removed), Applicability.UNSAFE), presumed("silu"))

    invalid = INVALID
    valid = VALID
