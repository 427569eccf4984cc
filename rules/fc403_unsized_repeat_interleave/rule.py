"""FC403: ``repeat_interleave`` with a tensor of repeats, without the size of the result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.syntax.tree import last_name
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc403_unsized_repeat_interleave.examples import INVALID, VALID
from rules.fc403_unsized_repeat_interleave.repeat_totals import RepeatTotals


class UnsizedRepeatInterleave(Rule):
    """``repeat_interleave`` whose repeats are a tensor, without ``output_size``.

    What it does:
        Adds ``output_size`` where the host knows it: the repeats were made of a Python list or are all the same.

    Why it breaks compilation:
        Without it, the size of the result is read from the device: the graph ends there, and a GPU waits.

    Fix safety:
        Safe when the repeats are made of a list that is known to hold ints, one for each element that is repeated
        (``torch.arange(len(counts))``), or are all one known int. Unsafe when that is taken for granted, or when the
        size is that of what the result meets in an operator: a wrong size is an error on a CPU, but not on a GPU. A
        total that is known on the device only is reported, not rewritten.

    References:
        PyTorch, ``torch.repeat_interleave``: "output_size ... will avoid stream synchronization"; graph break GB0036.
    """

    code: ClassVar[str] = "FC403"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_dynamic_output_shape_ops",)
    name: ClassVar[str] = "unsized-repeat-interleave"
    triggers: ClassVar[tuple[bytes, ...]] = (b"repeat_interleave",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it repeats by a tensor in compiled code."""
        assert isinstance(node, ast.Call)
        if not last_name(node.func).endswith("repeat_interleave"):
            return
        if (repeat := facts.ask(RepeatTotals).of(node)) is None:
            return
        message = "how long the result is depends on data"
        total = facts.ask(RepeatTotals).total(repeat)
        if isinstance(total, str):
            yield Finding(node, message, assumption=total)
            return
        at = len(total.parts)
        given = [f"{{{at + 1 + i}}}" for i in range(len(node.args))]
        given += [f"{k.arg}={{{at + 1 + len(node.args) + i}}}" for i, k in enumerate(node.keywords)]
        spelled = ", ".join([*given, f"output_size={total.template}"])
        parts = (*total.parts, node.func, *node.args, *(k.value for k in node.keywords))
        code = Code(f"{{{at}}}({spelled})", parts)
        applicability = Applicability.UNSAFE if total.assumption else Applicability.SAFE
        yield Finding(node, message, Fix((Replace(node, code),), applicability), total.assumption)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID
