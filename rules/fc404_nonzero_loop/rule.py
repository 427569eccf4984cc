"""FC404: a loop over the groups, or experts, that have any rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Enclose,
    Example,
    Finding,
    Fix,
    NearMiss,
    Replace,
    Rule,
    block,
    stacked,
)
from rules.fc404_nonzero_loop.examples import INVALID, VALID
from rules.fc404_nonzero_loop.row_loops import RowLoops
from rules.fc404_nonzero_loop.static_form import StaticForm


class NonzeroLoop(Rule):
    """A loop that picks rows by ``nonzero`` or one-argument ``torch.where``, computes on them, and adds them up.

    What it does:
        Writes a second loop, for compiled code: over all groups (experts), each over all rows, with zero in place of
        what a group adds for rows that are not its own. Eager code keeps the loop that was there.

    Why it breaks compilation:
        How many rows a group has, and which groups have any, is known only at run time. The graph ends at each
        ``nonzero``, ``torch.where(mask)``, ``x[rows]`` and ``.item()``, and as that happens inside of a loop the whole
        frame runs eagerly.

    Fix safety:
        Unsafe, for compiled code only; eager code runs as before. By cost: every group computes all rows, so a
        model with ``n`` experts of which ``k`` are chosen computes ``n / k`` times as much, and the graph holds
        the body ``n`` times. By rounding: the products are of other sizes. A module that no row was sent to
        gets a gradient of zeros in place of none. Every row has to be computed by itself: proven for the
        operations of PyTorch, taken for granted of the modules that the finding names; dropout draws other
        numbers. A row that is sent to a group twice counts twice, also where ``out[rows] += ...`` counted it
        once. Rows that were not sent to a group are masked after they are computed, so that infinities and NaN
        in them go nowhere; their gradient has to be finite. A mask with more groups than there are weights is
        an error, as it was, where a row is sent to one too many. A mask with fewer rows than are picked from is
        an error, where these were left alone. The result may be given rows of another dtype than its own, which
        ``index_add_`` refuses. Compiled code is an error where weights that both numbers pick have more than
        two dimensions, or rows that a mask picks are not as wide as the result. Anything else in the loop is
        reported and left alone.

    References:
        The expert loops of mixture-of-experts models; PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code: ClassVar[str] = "FC404"
    name: ClassVar[str] = "nonzero-loop"
    triggers: ClassVar[tuple[bytes, ...]] = (b"nonzero(", b"where(", b".any(", b" == ")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.For,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it goes from group to group in compiled code and picks the rows of each."""
        assert isinstance(node, ast.For)
        if not facts.ask(RowLoops).may_be(node):
            return
        static = facts.ask(RowLoops).of(node)
        if static is None:
            return
        message = "a loop over groups picks rows, the number of which depends on data"
        if not isinstance(static, str) and not facts.syntax.alone(node):
            static = "the line holds more than this loop"
        if isinstance(static, str):
            yield Finding(node, message, assumption=static)
            return
        compiling = "torch.compiler.is_compiling()"
        chosen = facts.syntax.statement_of(static.chosen)
        together = chosen is not node and facts.syntax.following(chosen)[:1] == [node]
        mask, weights, rows = (facts.writing.fresh_local(wish, node) for wish in ("_picked", "_weights", "_rows"))
        loop = StaticForm(static, mask, weights, rows).loop()
        read = static.counted if chosen is node or together else static.chosen
        asked, edits = compiling, list[Edit]()
        if read is not None:  # above the loop: behind a graph break in between, what is compiled may run eagerly
            edits.append(Replace(read, Code(f"None if {compiling} else {{0}}", (read,))))
            asked = f"{compiling} or {_name_of(facts.syntax.statement_of(read))} is None"
        header = stacked(block(Code(f"if {asked}:"), [loop]), Code("else:"))
        edits.insert(0, Enclose((chosen, node) if together else (node,), header))
        taken = [f"`{t}` row by row" for t in static.turns.values.taken_for]
        if static.doubtful and static.whole is not None:
            taken.append(f"`{static.whole.id}` to have no negative element")
        taken.append("all masks to have a row for each row that is picked from")
        taken.append("each row to name a group once, with a weight for each, and to be finite")
        yield Finding(
            node,
            message,
            Fix(tuple(edits), Applicability.UNSAFE),
            f"compiled code computes all rows for every group, and takes {' and '.join(taken)}: more work, other "
            "rounding and random numbers, and zeros as the gradient of groups without rows",
        )

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` is what a loop of this kind goes over."""
        loop = next((p for p in facts.syntax.ancestors(node) if isinstance(p, ast.stmt)), None)
        if not isinstance(loop, ast.For) or not any(n is node for n in ast.walk(loop.iter)):
            return False
        return facts.ask(RowLoops).may_be(loop) and facts.ask(RowLoops).of(loop) is not None

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _name_of(statement: ast.stmt) -> str:
    """The one name that ``statement`` binds."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    raise AssertionError(ast.unparse(statement))
