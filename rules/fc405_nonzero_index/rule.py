"""FC405: the places where a condition holds, listed to write to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.effects.totality import Effects
from patcher.facts.masks.listed import listed
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.rule import Applicability, Code, Finding, Fix, Insert, Replace, Rule
from rules.fc405_nonzero_index.examples import INVALID, VALID

_MESSAGE = "how many places there are depends on data"


class NonzeroIndex(Rule):
    """``x[torch.where(condition)] = 0``: a list of places that is not needed.

    What it does:
        Indexes with the condition itself: ``x[condition] = 0``. Of ``nonzero`` so with ``as_tuple=True``.

    Why it breaks compilation:
        How many places there are is known only at run time: ``nonzero`` and the one-argument ``torch.where``
        break the graph. A number that is written through a mask does not.

    Fix safety:
        Safe when a number is written, and the condition is proven to have the leading shape of what is assigned to: a
        mask of another shape is an error where a list of places is not. Unsafe without that proof, or for another
        value. Where both have no dimension, which was an error, the element is written. What is read through a list of
        places has a data-dependent size: it is reported, not rewritten.

    References:
        PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code = "FC405"
    removed_by = ("capture_dynamic_output_shape_ops",)
    name = "nonzero-index"
    triggers = (b"where(", b"nonzero(")
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it lists places in compiled code, to index with them."""
        assert isinstance(node, ast.Call)
        found = listed(node, facts.syntax)
        if found is None or not found[1]:
            return
        if facts.syntax.qualified(node.func) is None and not facts.presumed.of(found[0]).is_tensor:
            return
        readers = facts.ask(MaskedReads).uses(node)
        around = [(e, facts.syntax.parents[e]) for e in (readers if readers is not None else [node])]
        subscripts = [p for e, p in around if isinstance(p, ast.Subscript) and p.slice is e]
        if subscripts and len(subscripts) == len(around):
            yield _written(node, found[0], subscripts, facts)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid = INVALID
    valid = VALID


def _written(node: ast.Call, condition: ast.expr, subscripts: list[ast.Subscript], facts: Facts) -> Finding:
    """``x[places] = value``, or the reason why that stays."""
    if any(isinstance(s.ctx, ast.Load) for s in subscripts):
        return Finding(node, _MESSAGE, assumption="what is read there has a data-dependent size")
    held, text = facts.presumed.of(condition), ast.unparse(condition)
    own = subscripts[0].slice is node and isinstance(condition, ast.Name) and text == ast.unparse(subscripts[0].value)
    itself = held.is_boolean and (own or not facts.ask(Effects).aliases(condition))  # else it may change meanwhile
    mask = Code("{0}" if itself else "{0} != 0", (condition,))
    proven = all(_of_a_number(s, facts) for s in subscripts)
    unproven = next((s for s in subscripts if facts.ask(MaskedReads).row(s.value, condition) is None), None)
    if not proven or unproven is not None:
        shaped = f"the leading shape of `{ast.unparse((unproven or subscripts[0]).value)}`"
        granted = f"`{text}` is a tensor with a dimension at least, and {shaped}"
        granted += "" if proven else ", and what is written has no rows"
        return Finding(node, _MESSAGE, Fix((Replace(node, mask),), Applicability.UNSAFE), granted)
    if held.rank is not None and held.rank.least > 0:
        return Finding(node, _MESSAGE, Fix((Replace(node, mask),)))
    statement = facts.syntax.statement_of(node)
    if reason := facts.writing.why_not_replaced(statement) or facts.writing.why_not_ahead(node):
        return Finding(node, _MESSAGE, assumption=reason)
    if (torch_where := facts.writing.spelled("torch.where", node)) is None:
        return Finding(node, _MESSAGE, assumption="`torch` is not imported here")
    name = facts.writing.fresh_local("_places", node)
    either = Code(f"{name} if {name}.ndim else {torch_where}({name})")  # no dimension is listed as one
    return Finding(node, _MESSAGE, Fix((Insert(statement, (Code(f"{name} = {{0}}", (mask,)),)), Replace(node, either))))


def _of_a_number(target: ast.Subscript, facts: Facts) -> bool:
    statement = facts.syntax.statement_of(target)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    return value is not None and facts.value(value).is_number
