"""FC405: the places where a condition holds, listed to index with them or to count them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.effects.totality import Effects
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, Insert, NearMiss, Replace, Rule
from rules.fc405_nonzero_index.examples import INVALID, VALID
from rules.fc405_nonzero_index.places import PlaceLists, Places


class NonzeroIndex(Rule):
    """``x[torch.where(condition)] = value`` and ``len(condition.nonzero())``: a list of places that is not needed.

    What it does:
        Indexes with the condition itself, ``x[condition] = value``; counts with ``condition.count_nonzero()``.

    Why it breaks compilation:
        How many places there are is known only at run time: ``nonzero``, ``argwhere`` and the one-argument
        ``torch.where`` end the graph. A number that is written through a mask does not.

    Fix safety:
        Safe for an assignment when the condition is proven to have the leading shape of what is assigned to, and one
        dimension where the list is of one dimension: a mask of another shape is an error where a list of places is not.
        Unsafe without that proof. Where both have no dimension, which was an error, the element is written. Safe for a
        count where a 0-d tensor may stand in the place of the number: in a comparison with an int that is tested, or in
        a message. Other uses of the list are reported, not rewritten.

    References:
        PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code: ClassVar[str] = "FC405"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_dynamic_output_shape_ops",)
    name: ClassVar[str] = "nonzero-index"
    triggers: ClassVar[tuple[bytes, ...]] = (b"where(", b"nonzero(", b"argwhere(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it lists places in compiled code, to index with them or to count them."""
        assert isinstance(node, ast.Call)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in ("where", "nonzero", "argwhere") or (places := facts.ask(PlaceLists).of(node)) is None:
            return
        message = "how many places there are depends on data"
        if (count := facts.ask(PlaceLists).count(places)) is not None:
            reason = facts.ask(MaskedReads).why_not_number(count)
            if reason is not None:
                yield Finding(node, message, assumption=reason)
            else:
                yield Finding(node, message, Fix((Replace(count, Code("{0}.count_nonzero()", (places.condition,))),)))
        elif (subscripts := facts.ask(PlaceLists).subscripts(places)) is not None:
            yield _written(node, message, places, subscripts, facts)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _written(node: ast.Call, message: str, places: Places, subscripts: list[ast.Subscript], facts: Facts) -> Finding:
    """``x[places] = value``, or the reason why that stays."""
    if any(isinstance(s.ctx, ast.Load) for s in subscripts):
        return Finding(node, message, assumption="what is read there has a data-dependent size")
    if not places.apart and not places.flat and not all(_of_a_number(s, facts) for s in subscripts):
        return Finding(node, message, assumption="the value is not known to be a number")
    condition = facts.presumed.of(places.condition)
    boolean = condition.is_boolean
    direct = subscripts[0].slice is places.whole
    text = ast.unparse(places.condition)
    plain = direct and isinstance(places.condition, ast.Name) and text == ast.unparse(subscripts[0].value)
    itself = boolean and (
        plain or not facts.ask(Effects).aliases(places.condition)
    )  # else it may change as it is written
    if (not places.apart or places.flat) and not facts.ask(PlaceLists).one_dimension(places):
        return Finding(node, message, assumption=f"`{text}` is not known to have one dimension")
    rows = [facts.ask(MaskedReads).row(s.value, places.condition) for s in subscripts]
    mask = Code("{0}" if itself else "{0} != 0", (places.condition,))
    if None in rows:
        shaped = f"the leading shape of `{ast.unparse(subscripts[rows.index(None)].value)}`"
        assumption = f"`{text}` is a tensor with a dimension at least, and {shaped}"
        return Finding(node, message, Fix((Replace(places.whole, mask),), Applicability.UNSAFE), assumption)
    if condition.rank is not None and condition.rank.least > 0:
        return Finding(node, message, Fix((Replace(places.whole, mask),)))
    statement = facts.syntax.statement_of(node)
    if reason := facts.writing.why_not_replaced(statement) or facts.writing.why_not_ahead(places.whole):
        return Finding(node, message, assumption=reason)
    if direct and not _of_a_number(subscripts[0], facts):
        return Finding(node, message, assumption="the value would be evaluated after the condition")
    name = facts.writing.fresh_local("_places", node)
    if (listed := facts.writing.spelled("torch.where", node)) is None:
        return Finding(node, message, assumption="`torch` is not imported here")
    either = Code(f"{name} if {name}.ndim else {listed}({name})")  # a condition of no dimension is listed as of one
    return Finding(
        node, message, Fix((Insert(statement, (Code(f"{name} = {{0}}", (mask,)),)), Replace(places.whole, either)))
    )


def _of_a_number(target: ast.Subscript, facts: Facts) -> bool:
    statement = facts.syntax.statement_of(target)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    return value is not None and facts.value(value).is_number
