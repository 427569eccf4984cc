"""FC402: a read through a boolean mask."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.effects.totality import Effects
from patcher.facts.masks.masked_reads import MaskedRead, MaskedReads
from patcher.facts.masks.row_regions import RowRegion, RowRegions
from patcher.facts.syntax.tree import last_name
from patcher.rule import (
    Applicability,
    Code,
    Enclose,
    Finding,
    Fix,
    Replace,
    ReplaceStatements,
    Rule,
    block,
    filled,
    stacked,
)
from rules.fc402_mask_read.by_element import ByElement
from rules.fc402_mask_read.by_row import RowCall, RowCalls
from rules.fc402_mask_read.examples import INVALID, VALID
from rules.fc402_mask_read.filling import Filled, Filling
from rules.fc402_mask_read.over_all import static

_MESSAGE = "what a mask selects has a data-dependent size"


class MaskRead(Rule):
    """A read ``x[mask]`` (or ``masked_select``) with a boolean mask: how many rows it has is known only at run time.

    What it does:
        Asks for the same without the read: ``x[mask].numel()``, ``x[mask].shape[0]`` and ``len(x[mask])`` count the
        mask; ``x[mask].sum()`` and ``mean`` reduce ``x`` with the other places filled in;
        ``y[mask] = f(x[mask])`` with an element-wise ``f`` becomes ``y.copy_(torch.where(mask, f(x), y))``.

        A mean or sum of a name that what is selected has got keeps all places and adds nothing for the others.

        ``y[mask] = g(x[mask])`` with a function ``g`` of the same file gives ``g`` all rows, with the first row that is
        set in the place of those that are not, and keeps what the mask selects.

        Statements that give rows to modules and write them back (``h[mask] += mlp(norm(h[mask]))``, ``masked_scatter``)
        get a second form for compiled code: all rows are computed, and ``torch.where`` picks by the mask.

    Why it breaks compilation:
        The size of ``x[mask]`` depends on data: the graph breaks there, and inside of a loop the whole frame is
        dropped.

    Fix safety:
        Safe for counts when it is proven that the mask is a boolean tensor with the leading shape of ``x``, and that a
        0-d tensor may stand where the number stood: in a comparison with an int that is tested, put in a message, or
        handed to a function of the project that does nothing but check it. Safe for assignments that add, subtract,
        multiply and the like without a chance of an error or of an infinite gradient at the places that are left out.
        Unsafe for ``sum`` and ``mean``: they add up in another order, and a mask that does not fit may be no error any
        more. Eager code keeps what it had. Unsafe for a function of rows: it is taken to treat each by itself, and one
        row at least to be set. Unsafe for what modules do to rows, in compiled code only: by cost and rounding, and
        because it assumes that each row is computed by itself. Rows that the mask leaves out must not raise or send an
        infinite gradient; values of another dtype than what they are written to are no error there, and dropout draws
        other numbers. A mask on another device than ``x`` is no error any more where only the count is asked for. What
        is packed by the mask and handed on is reported, not rewritten.

    References:
        PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code = "FC402"
    removed_by = ("capture_dynamic_output_shape_ops",)
    name = "mask-read"
    triggers = (b"]",)
    listens_to = (ast.Subscript, ast.Call)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads through a mask in compiled code."""
        assert isinstance(node, (ast.Subscript, ast.Call))
        if isinstance(node, ast.Call) and not last_name(node.func).endswith("masked_select"):
            return
        if (read := facts.ask(MaskedReads).of(node)) is None:
            return
        rows = facts.ask(RowCalls).of(facts.syntax.statement_of(node))
        if facts.ask(MaskedReads).assigned_as_it_is(read) or (rows is not None and node is not rows.reads[0]):
            return  # FC401; told with the first one
        summed = facts.ask(Filling).of(read)
        if isinstance(summed, Filled):
            if node is summed.told_at:
                yield Finding(node, _MESSAGE, Fix(summed.edits, Applicability.UNSAFE), summed.assumption)
            return
        form = _Form(facts, read, rows)
        outcome = summed or form.fix()
        region = facts.ask(RowRegions).holding(facts.syntax.statement_of(node)) if isinstance(outcome, str) else None
        if region is not None:
            if node is not region.reads[0]:
                return  # told with the first one
            outcome = form.over_all(region)
        fix, reason = (outcome, form.assumption) if isinstance(outcome, Fix) else (None, outcome)
        yield Finding(node, _MESSAGE, fix, reason)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid = INVALID
    valid = VALID


class _Form:
    """One read, and the questions that decide what can be asked instead."""

    def __init__(self, facts: Facts, read: MaskedRead, rows: RowCall | None) -> None:
        self.facts = facts
        self.read = read
        self.rows = rows
        self.assumption = ""

    def fix(self) -> Fix | str:
        """The rewritten expression, or why there is none."""
        read = self.read
        reads = self.facts.ask(MaskedReads)
        counted, hoisted = reads.counted(read), reads.written_back(read)
        if self.rows is not None and read.sure:
            return self.by_row(self.rows)
        if counted is None and hoisted is None:
            return "the rows are packed, and their number goes on with them"
        if not read.sure:
            return f"`{ast.unparse(read.mask)}` may be something else than a tensor"
        if read.row is None:
            return f"the mask is not known to have the leading shape of `{ast.unparse(read.base)}`"
        if self.facts.ask(Effects).why_not_total(read.base) is not None and not isinstance(read.base, ast.Name):
            return f"`{ast.unparse(read.base)}` is not a plain name"
        if counted is not None:
            return self.count(*counted)
        assert hoisted is not None
        return self.hoist(hoisted)

    # --- counts -----------------------------------------------------------------------------------------------------

    def count(self, whole: ast.expr, elements: bool) -> Fix | str:
        if (reason := self.facts.ask(MaskedReads).why_not_number(whole)) is not None:
            return reason
        return Fix((Replace(whole, self.number(self.read.row or 0 if elements else 0)),))

    def number(self, row: int) -> Code:
        """How many elements of a tensor the mask selects when it leaves ``row`` dimensions of it to a row."""
        if not row:
            return Code("{0}.sum()", (self.read.mask,))
        size = "{1}.shape[-1]" if row == 1 else f"{{1}}.shape[-{row}:].numel()"
        return Code(f"{{0}}.sum() * {size}", (self.read.mask, self.read.base))

    # --- written back -----------------------------------------------------------------------------------------------

    def hoist(self, target: ast.Subscript) -> Fix | str:
        """``torch.where`` over all of ``f(x)``, where ``f`` takes each element by itself and fails on none."""
        facts, statement = self.facts, self.facts.syntax.statement_of(target)
        assert isinstance(statement, ast.Assign)
        into, value = facts.value(target.value), facts.value(statement.value)
        if not isinstance(target.value, ast.Name) or facts.ask(Effects).may_overlap(target.value):
            return f"`{ast.unparse(target.value)}` may be an expanded view"
        if (where := facts.writing.spelled("torch.where", statement)) is None:
            return "`torch` is not imported here"
        if into.dtype is None or value.dtype is None or not into.dtype.exactly(value.dtype):
            return "the value is not known to have the dtype of what it is assigned to"
        if (
            reason := facts.writing.why_not_replaced(statement) or facts.ask(Effects).why_not_total(self.read.mask)
        ) is not None:
            return reason  # the mask is evaluated less often
        if isinstance(reads := facts.ask(ByElement).reads(statement.value, target), str):
            return reads
        row = self.read.row or 0
        spread = ".unsqueeze(-1)" if row == 1 else f"[...{', None' * row}]" if row else ""
        parts = (target.value, self.read.mask, filled(statement.value, {r: Code("{0}", (r.value,)) for r in reads}))
        line = Code(f"{{0}}.copy_({where}({{1}}{spread}, {{2}}, {{0}}))", parts)
        return Fix((ReplaceStatements((statement,), (line,)),))

    # --- a function of the rows -------------------------------------------------------------------------------------

    def by_row(self, rows: RowCall) -> Fix | str:
        """The function is given all rows; where the mask is not set, the first one where it is."""
        facts, torch = self.facts, self.facts.writing.spelled("torch", rows.statement)
        if torch is None or (reason := facts.writing.why_not_replaced(rows.statement)) is not None:
            return "`torch` is not imported here" if torch is None else str(reason)
        if any(facts.ask(Effects).may_overlap(t.value) for t in rows.targets):
            return "what is assigned to may be an expanded view"
        dimensions = [facts.ask(MaskedReads).row(t.value, rows.mask) for t in rows.targets]
        if None in dimensions:
            return f"`{rows.mask.id}` is not known to have the leading shape of what is assigned to"
        places, index = facts.writing.fresh_local("_places", rows.mask), facts.writing.fresh_local("_rows", rows.mask)
        arange = f"{torch}.arange({places}.numel(), device={places}.device)"
        lines = [Code(f"{places} = {rows.mask.id}.flatten()")]
        lines.append(Code(f"{index} = {torch}.where({places}, {arange}, {places}.int().argmax())"))
        picked = f"{{0}}.flatten(0, {rows.mask.id}.ndim - 1)[{index}]"
        call = filled(rows.call, {r: Code(picked, (r.value,)) for r in rows.reads})
        names = [facts.writing.fresh_local("_values", rows.mask) for _ in rows.targets]
        several = isinstance(rows.statement.targets[0], ast.Tuple)
        lines.append(Code(", ".join(names) + ("," if several and len(names) == 1 else "") + " = {0}", (call,)))
        for target, name, row in zip(rows.targets, names, dimensions, strict=True):
            mask = f"{rows.mask.id}[...{', None' * row}]" if row else rows.mask.id
            chosen = f"{{0}}.copy_({torch}.where({mask}, {name}.reshape({{0}}.shape), {{0}}))"
            lines.append(Code(chosen, (target.value,)))
        self.assumption = (
            f"`{ast.unparse(rows.call.func)}` takes each row by itself (other rounding), and a place is set"
        )
        return Fix((ReplaceStatements((rows.statement,), tuple(lines)),), Applicability.UNSAFE)

    # --- rows that modules compute ----------------------------------------------------------------------------------

    def over_all(self, region: RowRegion) -> Fix | str:
        """Compiled code computes all rows, and picks by the mask; eager code stays."""
        facts, first = self.facts, region.statements[0]
        if facts.writing.spelled("torch", first) != "torch":
            return "`torch` is not imported here"
        rows, picked = facts.writing.fresh_local("_rows", first), facts.writing.fresh_local("_picked", first)
        masks = " and ".join(f"`{m}`" for m in sorted(region.masks))
        self.assumption = (
            f"each row that {masks} leaves out can be computed as well, by itself, and is finite: compiled code does "
            "so, which is more work and other rounding"
        )
        compiled = block(Code("if torch.compiler.is_compiling():"), list(static(region, rows, picked)))
        return Fix((Enclose(region.statements, stacked(compiled, Code("else:"))),), Applicability.UNSAFE)
