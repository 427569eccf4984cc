"""FC404: a loop over the groups, or experts, that have any rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Edit, Enclose, Finding, Fix, Replace, Rule, block, stacked
from rules.fc404_nonzero_loop.examples import INVALID, VALID
from rules.fc404_nonzero_loop.over_all_rows import GroupLoops, OverAllRows, Refused

_ASSUMED = (
    "each row is computed by itself and finite, names a group once, has a weight for each, and names no group that is "
    "not there; the loop leaves out no group with rows and hands nothing on; compiled code computes all rows for every "
    "group: more work, other rounding and random numbers, and zeros as the gradient of groups without rows"
)


class NonzeroLoop(Rule):
    """A loop that picks rows by ``nonzero`` or one-argument ``torch.where``, computes on them, and adds them up.

    What it does:
        Writes a second loop, for compiled code: over all groups (experts), each over all rows, with zero in place of
        what a group adds for rows that are not its own. Eager code keeps the loop that was there.

    Why it breaks compilation:
        How many rows a group has, and which groups have any, is known only at run time. The graph breaks at each
        ``nonzero``, ``torch.where(mask)``, ``x[rows]`` and ``.item()``, and as that happens inside of a loop the whole
        frame runs eagerly.

    Fix safety:
        Unsafe, and for compiled code only; eager code runs as before. Assumes:

        - Each row is computed by itself, and is finite, also where it is not picked. Dropout draws other numbers.
        - Each row names a group once, has a weight for each, and names no group that is not there.
        - The loop leaves out no group with rows, and nothing goes from one round into the next, or on behind the loop.

        Every group computes all rows: a model with ``n`` experts of which ``k`` are chosen computes ``n / k`` times as
        much, and the graph holds the body ``n`` times. Products are rounded otherwise. A module that no row was sent
        to gets a gradient of zeros in place of none.

        Not fixed where the loop ends early, uses the numbers of the rows for more than picking rows and weights, picks
        two kinds of weights, or changes rows in place.

    References:
        The expert loops of mixture-of-experts models; PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code = "FC404"
    name = "nonzero-loop"
    triggers = (b"nonzero(", b"where(")
    listens_to = (ast.For,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it goes from group to group in compiled code and picks the rows of each."""
        assert isinstance(node, ast.For)
        found = facts.ask(GroupLoops).of(node)
        if found is None:
            return
        message = "a loop over groups selects a data-dependent number of rows: graph breaks"
        foreign = {
            ast.unparse(n.func)
            for n in ast.walk(node)
            if isinstance(n, ast.Call) and not (facts.syntax.qualified(n.func) or "").startswith("torch.")
        }
        mask, weights, rows = (facts.writing.fresh_local(wish, node) for wish in ("_picked", "_weights", "_rows"))
        try:
            text = OverAllRows(found, foreign, mask, weights, rows).loop()
        except Refused as refusal:
            yield Finding(node, message, assumption=str(refusal))
            return
        if not facts.syntax.alone(node) or not facts.syntax.is_builtin(ast.Name("range", ast.Load())):
            yield Finding(
                node, message, assumption="the line holds more than this loop, or `range` is another name here"
            )
            return
        compiling = "torch.compiler.is_compiling()"
        made = facts.syntax.statement_of(found.hits) if found.hits is not None else node
        together = made is not node and facts.syntax.following(made)[:1] == [node]
        asked, edits = compiling, list[Edit]()
        if made is not node and not together and found.hits is not None:
            # behind a graph break in between, what is compiled may run eagerly
            edits.append(Replace(found.hits, Code(f"None if {compiling} else {{0}}", (found.hits,))))
            asked = f"{compiling} or {ast.unparse(node.iter)} is None"
        loop = Code(text.replace("{", "{{").replace("}", "}}"))
        header = stacked(block(Code(f"if {asked}:"), [loop]), Code("else:"))
        edits.insert(0, Enclose((made, node) if together else (node,), header))
        yield Finding(node, message, Fix(tuple(edits), Applicability.UNSAFE), _ASSUMED)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` is what a loop of this kind goes over."""
        loop = next((p for p in facts.syntax.ancestors(node) if isinstance(p, ast.stmt)), None)
        if not isinstance(loop, ast.For) or not any(n is node for n in ast.walk(loop.iter)):
            return False
        return facts.ask(GroupLoops).of(loop) is not None

    invalid = INVALID
    valid = VALID
