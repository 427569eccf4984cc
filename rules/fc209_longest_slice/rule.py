"""FC209: a batch that is cut to its longest row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Enclose, Example, Finding, Fix, NearMiss, Rule
from rules.fc209_longest_slice.cuts import Cut, Cuts
from rules.fc209_longest_slice.examples import INVALID, VALID


class LongestSlice(Rule):
    """``text = text[:, : lengths.max()]``: a padded batch is cut to its longest row, which it has as a rule.

    What it does:
        Compiled code cuts nothing off, and checks on the device that nothing was to cut: the longest row is as long as
        the batch is wide. Eager code cuts as before.

    Why it breaks compilation:
        The end of a slice has to be a number of the host, and the lengths are in a tensor. The graph ends there, and
        PyTorch gives the function up: it runs eagerly, with all that is behind the slice. Such slices stand at the top
        of models that were written for ``DataParallel``, which hands each device a part of a batch.

    Fix safety:
        Unsafe: a batch that is wider than its longest row is an error in compiled code, from the device, where the
        original cuts. Whoever pads to the longest row, as loaders do, never sees it. What is cut and what is not share
        their memory either way. Only for slices of whole statements that cut one dimension from its start, and not
        where the name is changed in shape in place.

    References:
        PyTorch, graph break GB0124 (``Tensor.item()``), which a slice asks for.
    """

    code: ClassVar[str] = "FC209"
    name: ClassVar[str] = "longest-slice"
    triggers: ClassVar[tuple[bytes, ...]] = (b"max(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Slice,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the slice ``node`` when it cuts a batch to its longest row."""
        assert isinstance(node, ast.Slice)
        cut = facts.ask(Cuts).of(node)
        torch = facts.writing.spelled("torch", node)
        if cut is None or torch is None:
            return
        message = (
            f"`{ast.unparse(cut.statement)}` reads a length on the host: the graph ends, and the function is given up"
        )
        presumed = f"`{ast.unparse(cut.whole)}` is never wider than its longest row: compiled code raises where it is"
        yield Finding(node, message, _uncut(cut, torch), presumed)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Slice) and any(self.check(node, facts))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _uncut(cut: Cut, torch: str) -> Fix:
    text = '"compiled code cuts nothing off"'
    lines = [
        f"if {torch}.compiler.is_compiling():",
        f"    {torch}._assert_async({{0}}.max() >= {{1}}.shape[{cut.dimension}], {text})",
    ]
    if cut.target.id != getattr(cut.whole, "id", None):
        lines.append(f"    {cut.target.id} = {{1}}")
    code = Code("\n".join([*lines, "else:"]), (cut.lengths, cut.whole))
    return Fix((Enclose((cut.statement,), code),), Applicability.UNSAFE, asserts=True)
