"""Sums and means of what a mask selects, over all of it: the others are filled with what adds nothing."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.masks.masked_reads import MaskedRead, MaskedReads
from patcher.facts.values.types import Category
from patcher.rule import Code, Edit, Enclose, Insert, Replace, block, filled, stacked
from rules.fc402_mask_read.reducing import Reducing

_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_ORDER = "sums may differ in their last bits, for they are taken in another order"


@dataclass(frozen=True)
class Filled:
    """The edits, what they take for granted, and which read they are told at."""

    edits: tuple[Edit, ...]
    assumption: str
    told_at: ast.AST


class Filling(Analysis):
    """Forms for reads of one module; a string says why there is none."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.writing = facts.writing

    def of(self, read: MaskedRead) -> Filled | str | None:
        """For a sum or mean of what ``read`` gives, or of the name that it gets; None where it is no such."""
        if not (read.sure and read.first):
            return None
        reduced, named = self.facts.ask(MaskedReads).reduced(read), self.facts.ask(Reducing).named(read)
        if named is not None:
            return self._summed(read, named[1], named[2], named[0].targets[0])
        if reduced is None or reduced[1] not in ("sum", "mean"):
            return None
        return self._summed(read, *reduced, None)

    def _summed(self, read: MaskedRead, call: ast.Call, name: str, held: ast.expr | None) -> Filled | str:
        """``call`` is the ``name`` of ``read``, or of ``held``, which is assigned to it."""
        statement = self.syntax.statement_of(read.node)
        where = self.writing.spelled("torch.where", statement)
        reason = self._why_not(read, statement) or self.writing.why_not_replaced(self.syntax.statement_of(call))
        if reason or where is None:
            return reason or "`torch` is not imported here"
        dtype = self.facts.presumed.of(read.base).dtype
        if name == "mean" and dtype is not None and dtype.category in (Category.INT, Category.BOOL):
            return "the mean of integers is an error"
        made: list[Code] = []
        base: ast.expr | Code = read.base
        if not isinstance(base, ast.Name) and (name == "mean" or self._is_shaped(read)):
            if getattr(statement, "value", None) not in (call, read.node):
                return f"`{ast.unparse(read.base)}` is not a plain name"
            base = Code(self.writing.fresh_local("_values", statement))  # nothing is evaluated before it
            made.append(Code("{0} = {1}", (base, read.base)))
        kept, lines = self._kept(read, base, spread=name == "mean")
        selected = Code(f"{where}({{0}}, {{1}}, 0)", (kept, base))
        ahead, count = (*made, *lines), ""
        if name == "mean" and held is not None:  # the mask may be another one where the name is read
            count = self.writing.fresh_local("_count", statement)
            ahead = (*ahead, Code(f"{count} = {{0}}.sum()", (kept,)))
        whole = selected if name == "sum" and held is not None else Code("{0}.sum()", (selected,))
        assumption = _ORDER
        if name == "mean":
            assumption += "; that the elements are floats and that their sum fits their dtype is taken for granted"
            whole = selected if held is not None else Code("{0} / {1}.sum()", (whole, kept))
        edits = self.compiled(statement, ahead, read.node if held is not None else call, whole)
        if isinstance(edits, str) or held is None or not count:
            return edits if isinstance(edits, str) else Filled(edits, assumption, read.node)
        divided = Code(f"{{0}}.sum() / {count}", (held,))
        if self.facts.compiled_only(statement):
            return Filled((*edits, Replace(call, divided)), assumption, read.node)
        # what the name holds is asked for, not once more who runs: behind a graph break that may be eager code
        chosen = Replace(call, Code(f"{{0}} if {count} is None else {{1}}", (call, divided)))
        return Filled((Insert(statement, (Code(f"{count} = None"),)), *edits, chosen), assumption, read.node)

    # --- in compiled code only, so that eager code gives what it gave, to the last bit --------------------------------

    def _asking(self, at: ast.AST) -> str:
        return f"{self.writing.spelling('torch.compiler', at)}.is_compiling()"

    def compiled(self, at: ast.stmt, ahead: tuple[Code, ...], old: ast.expr, new: Code) -> tuple[Edit, ...] | str:
        """``new`` for ``old`` in the statement ``at``, below ``ahead``."""
        if ahead and isinstance(at, ast.If | ast.While | ast.With | ast.AsyncWith | ast.Match):
            return "it is no assignment and no result"
        if self.facts.compiled_only(at):
            return (Insert(at, ahead), Replace(old, new)) if ahead else (Replace(old, new),)
        match at:
            case ast.Assign(targets=targets, value=value):
                start = " = ".join(f"{{{n}}}" for n in range(len(targets)))
                line = Code(f"{start} = {{{len(targets)}}}", (*targets, filled(value, {old: new})))
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _SIGNS:
                line = Code(f"{{0}} {_SIGNS[type(op)]}= {{1}}", (target, filled(value, {old: new})))
            case ast.Return(value=ast.expr() as value):
                line = Code("return {0}", (filled(value, {old: new}),))
            case _ if not ahead:
                return (Replace(old, Code(f"{{0}} if {self._asking(at)} else {{1}}", (new, old))),)
            case _:
                return "it is no assignment and no result"
        written = block(Code(f"if {self._asking(at)}:"), [*ahead, line])
        return (Enclose((at,), stacked(written, Code("else:"))),)

    # --- the mask -----------------------------------------------------------------------------------------------------

    def _why_not(self, read: MaskedRead, statement: ast.stmt) -> str:
        """Why the mask of ``read`` cannot be asked for in front of ``statement``, and again; "" where it can."""
        if self.writing.spelled("torch", statement) is None:
            return "`torch` is not imported here"
        reason = self.facts.ask(Unchanged).why_impure(read.mask) or self.writing.why_not_ahead(read.node)
        return reason or self.writing.why_not_replaced(statement) or ""

    def _is_shaped(self, read: MaskedRead) -> bool:
        """Whether the mask of ``read`` needs dimensions to be added, or its shape to be asked for."""
        return isinstance(read.node, ast.Subscript) and read.row != 0

    def _kept(self, read: MaskedRead, base: ast.expr | Code, spread: bool) -> tuple[ast.expr | Code, tuple[Code, ...]]:
        """The mask, with dimensions that fit ``base`` (``spread``: in its shape), and what has to be said before."""
        mask: ast.expr | Code = read.mask
        if not self._is_shaped(read) and (not spread or read.row == 0):
            return mask, ()
        name = Code(self.writing.fresh_local("_kept", self.syntax.statement_of(read.node)))
        if isinstance(read.node, ast.Call):  # it fits by broadcasting, either way
            torch = self.writing.spelled("torch", read.node)
            return name, (Code(f"{{0}} = {{1}} & {torch}.ones_like({{2}}, dtype={torch}.bool)", (name, mask, base)),)
        lines = []
        if not isinstance(mask, ast.Name | ast.Attribute):
            lines.append(Code("{0} = {1}", (name, mask)))
            mask = name
        beside = Code("{0}[(..., *[None] * ({1}.ndim - {0}.ndim))]", (mask, base))
        if read.row is not None:
            beside = Code(f"{{0}}[...{', None' * read.row}]", (mask,))
        lines.append(Code("{0} = {1}.expand_as({2})" if spread else "{0} = {1}", (name, beside, base)))
        return name, tuple(lines)
