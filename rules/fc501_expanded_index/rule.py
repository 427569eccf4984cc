"""FC501: position ids that are expanded, not repeated, and then handed to a block that may be compiled by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.values.sizes import Sizes
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc501_expanded_index.examples import INVALID, VALID
from rules.fc501_expanded_index.indices import Indices


class ExpandedIndex(Rule):
    """Position ids of ``torch.arange`` that are expanded over the batch and leave the function.

    What it does:
        Writes ``.repeat(batch, 1)`` for ``.expand(batch, -1)`` where one row of integers, (T) or (1, T), goes to a
        module, a function that is compiled by itself, or the caller. Ids that are used up by operators, or converted to
        floating numbers, in the same function are left alone: there is nothing to win.

    Why it breaks compilation:
        ``expand`` gives rows that lie on top of each other (stride 0), but for a batch of one (stride T). A block that
        is compiled by itself for any batch (its batch dimension marked unbacked) guards on the strides, and is compiled
        again when the batch goes from one to more, or back ("stride mismatch: expected 0, actual T").
        ``repeat`` gives the same strides for any batch. Measured on torch 2.13, recompiles for batches of 1, 2, 3 and
        4: ``expand`` 0, 1, 0, 0; ``repeat`` 0, 0, 0, 0. Inside of one compiled region, behind a graph break in it, and
        for a block whose batch is not marked, or marked dynamic, both cost the same: as nanoVLM does, compiled whole.

    Fix safety:
        Values, shape and dtype are the same, and the ids are integers that nobody trains. Safe where a count changes:
        the ids are marked unbacked in their batch before they are handed on, all code that gets them is read, and it
        neither writes to them nor asks for their strides, as ``view`` does (in rows that lie on top of each other a
        write to one changes all). Unsafe, and mostly of no use, without such a mark in the source, and where the ids
        go to the caller, or to a module or function that is not known.
        It is made only when the row comes from ``torch.arange`` here and nothing reads it afterwards, when the ids are
        not changed in place, kept, or asked for their strides in this function, and when the batch is known not to be
        negative (``expand`` takes -1 for "as it is"): a batch that is a plain argument makes it unsafe. A width that is
        written out must be the very number of ids. The copy takes the bytes of one integer for each id.

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
        if ast.unparse(width) != "-1" and (row.length is None or not facts.ask(Indices).same_number(row.length, width)):
            return
        fate = facts.ask(Indices).fate(node)
        if fate.crosses is None or fate.obstacle is not None:
            return
        edits = (Replace(node.func, Code("{0}.repeat", (node.func.value,))), Replace(width, Code("1")))
        counts = "" if fate.marked else f" ({_COUNTS})"
        message = f"ids that are expanded over the batch change their strides with it: {fate.crosses}{counts}"
        assumptions = [fate.unread] if fate.unread is not None else []
        if not fate.marked:
            assumptions.append(
                "what gets them is compiled by itself, with its batch marked unbacked, or nothing is won"
            )
        if not facts.ask(Sizes).is_count(batch):
            assumptions.append(f"`{ast.unparse(batch)}` is not negative (`expand` takes -1 for the size that is there)")
        applicability = Applicability.UNSAFE if assumptions else Applicability.SAFE
        yield Finding(node, message, Fix(edits, applicability), "; ".join(assumptions))

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


#: What the source does not tell, and what decides whether there is anything to win.
_COUNTS = (
    "a recompile where that is compiled by itself with its batch marked unbacked; elsewhere both forms cost the same"
)


def _sizes(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The two sizes of ``x.expand(batch, width)``."""
    sizes = call.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if call.keywords or len(sizes) != 2 or any(isinstance(s, ast.Starred) for s in sizes):
        return None
    return sizes[0], sizes[1]
