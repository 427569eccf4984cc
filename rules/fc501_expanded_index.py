"""FC501: position ids that are expanded, not repeated, and then cross into a block of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Example, Finding, Fix, NearMiss, Replace


class ExpandedIndex:
    """Position ids out of ``torch.arange`` that are expanded over the batch and handed to another module.
    """

    code: ClassVar[str] = "FC501"
    name: ClassVar[str] = "expanded-index"
    triggers: ClassVar[tuple[bytes, ...]] = (b"expand",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    fixed_in: ClassVar[tuple[int, int] | None] = None

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it expands ids over a batch, and the ids leave the function."""
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "expand":
            return
        sizes = _sizes(node)
        if sizes is None or not facts.reached(node) or facts.eager_only(node):
            return
        batch, width = sizes
        row = facts.indices.row(node.func.value)
        if row is None or isinstance(batch, (ast.Constant, ast.UnaryOp)):
            return
        if ast.unparse(width) != "-1" and (row.length is None or not facts.indices.same_number(width, row.length)):
            return
        fate = facts.indices.fate(node)
        if fate.crosses is None or fate.obstacle is not None:
            return
        edits = (Replace(node.func, Code("{0}.repeat", (node.func.value,))), Replace(width, Code("1")))
        message = f"expanded ids change their strides with the batch, and {fate.crosses}"
        if facts.sizes.is_count(batch):
            yield Finding(node, message, Fix(edits))
        else:
            assumption = f"`{ast.unparse(batch)}` is not negative (`expand` takes -1 for the size that is there)"
            yield Finding(node, message, Fix(edits, Applicability.UNSAFE), assumption)


def _sizes(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The two sizes of ``x.expand(batch, width)``."""
    sizes = call.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if call.keywords or len(sizes) != 2 or any(isinstance(s, ast.Starred) for s in sizes):
        return None
    return sizes[0], sizes[1]
