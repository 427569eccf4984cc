"""FC501: position ids that are expanded, not repeated, and then handed to a block that may be compiled by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc501_expanded_index.examples import INVALID, VALID
from rules.fc501_expanded_index.indices import Indices


class ExpandedIndex(Rule):
    """Position ids of ``torch.arange`` that are expanded over the batch and leave the function.

    What it does:
        Writes ``.repeat(batch, 1)`` for ``.expand(batch, -1)`` where one row of integers, (T) or (1, T), goes to a
        module, a function that is compiled by itself, or the caller. Ids that are used up by operators, or converted to
        floating numbers, in the same function are not fixed: there is nothing to win.

    Why it breaks compilation:
        ``expand`` gives rows that lie on top of each other (stride 0), but for a batch of one (stride T). A block that
        is compiled by itself for any batch (its batch dimension marked unbacked) guards on the strides, and is compiled
        again when the batch goes from one to more, or back ("stride mismatch: expected 0, actual T").
        ``repeat`` gives the same strides for any batch. Measured on torch 2.13, recompiles for batches of 1, 2, 3 and
        4: ``expand`` 0, 1, 0, 0; ``repeat`` 0, 0, 0, 0. Inside of one compiled region, behind a graph break in it, and
        for a block whose batch is not marked, or marked dynamic, both cost the same: as nanoVLM does, compiled whole.

    Fix safety:
        Unsafe. Values, shape and dtype are the same, but rows no longer lie on top of each other: in expanded rows a
        write to one changes all, and ``stride`` and ``view`` tell them apart. It is of no use where what gets the ids
        is not compiled by itself with its batch marked unbacked. A batch of -1 is "as it is" for ``expand`` and an
        error for ``repeat``. Not fixed where the row does not come from ``torch.arange`` in this function, and where a
        width that is written out is not the very number of ids. The copy takes the bytes of one integer for each id.

    References:
        The position ids of the nanoVLM report; PyTorch, ``Tensor.expand``, ``torch._dynamo.decorators.mark_unbacked``.
    """

    code: ClassVar[str] = "FC501"
    name: ClassVar[str] = "expanded-index"
    triggers: ClassVar[tuple[bytes, ...]] = (b"expand",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("dynamic shape", "recompilation")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it expands ids over a batch, and the ids leave the function."""
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "expand":
            return
        sizes = _sizes(node)
        if sizes is None:
            return
        batch, width = sizes
        row = facts.ask(Indices).row(node.func.value)
        if row is None or isinstance(batch, (ast.Constant, ast.UnaryOp)):
            return
        if ast.unparse(width) != "-1" and not facts.ask(Indices).same_number(row.length, width):
            return
        crosses = facts.ask(Indices).crosses(node)
        if crosses is None:
            return
        edits = (Replace(node.func, Code("{0}.repeat", (node.func.value,))), Replace(width, Code("1")))
        message = f"ids that are expanded over the batch change their strides with it: {crosses}"
        yield Finding(node, message, Fix(edits, Applicability.UNSAFE), _ASSUMED)

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


_ASSUMED = "what gets them is compiled by itself with its batch unbacked, writes to no row and asks for no strides"


def _sizes(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The two sizes of ``x.expand(batch, width)``."""
    sizes = call.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if call.keywords or len(sizes) != 2 or any(isinstance(s, ast.Starred) for s in sizes):
        return None
    return sizes[0], sizes[1]
