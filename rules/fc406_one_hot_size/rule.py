"""FC406: one-hot rows that are made as wide as the data asks for, and cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Enclose, Example, Finding, Fix, NearMiss, Rule, filled
from rules.fc406_one_hot_size.examples import INVALID, VALID
from rules.fc406_one_hot_size.layout import Layout
from rules.fc406_one_hot_size.widened import Cut, WidenedOneHots

_NEGATIVE = "Class values must be non-negative."


class OneHotSize(Rule):
    """``F.one_hot(index, max(index.max() + 1, n))[..., :n]``: classes beyond ``n`` are made and thrown away.

    What it does:
        In code that is being compiled, compares the index with each of the ``n`` classes: a class beyond them is a row
        of zeros either way. Eager code stays as it is.

    Why it breaks compilation:
        ``max`` of a tensor and a number reads the tensor, and the size of what ``one_hot`` makes is read from data: the
        graph ends at both, with and without the settings that capture numbers.

    Fix safety:
        Safe: the rows are the same integers of the same shape for indices of int64 that are not negative, where there
        is one at least; ``one_hot`` raises for all others. The new code asks for dtype and number, and asserts the sign
        on the device. An index so large that there is no memory for its classes gives a row of zeros. Rows that were
        cut have gaps between them, the new ones have none: unsafe where anybody may look at strides, or change the rows
        in place, or gets them; where strides are seen to matter (``view``, ``is_contiguous``) nothing is done. Nor is
        where anything else comes before in the statement, or decides whether there are rows.

    References:
        PyTorch, ``torch.nn.functional.one_hot``; "Data dependent operator" (graph break GB0027).
    """

    code: ClassVar[str] = "FC406"
    name: ClassVar[str] = "one-hot-size"
    triggers: ClassVar[tuple[bytes, ...]] = (b"one_hot",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Subscript,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it cuts one-hot rows, in compiled code, that are as wide as data asks for."""
        assert isinstance(node, ast.Subscript)
        cut = facts.ask(WidenedOneHots).of(node)
        if cut is None or _is_for_others(node, facts):
            return
        message = "how many classes there are is read from data, and those above the limit are thrown away"
        made = cut if isinstance(cut, str) else _fix(cut, facts)
        if isinstance(made, str) or isinstance(cut, str):
            yield Finding(node, message, assumption=str(made))
        elif told := facts.ask(Layout).why_told(cut.whole, "torch.int64"):
            unsafe = replace(made, applicability=Applicability.UNSAFE)
            yield Finding(node, message, unsafe, f"the new rows are dense: {told}")
        else:
            yield Finding(node, message, made)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _fix(cut: Cut, facts: Facts) -> Fix | str:
    """The clause for compiled code, or why there is none."""
    last = cut.statements[-1]
    reason = next((why for s in cut.statements if (why := facts.writing.why_not_replaced(s)) is not None), None)
    if reason is not None or (reason := facts.writing.why_not_builtin("isinstance", "int")):
        return reason
    if reason := facts.writing.why_not_first(cut.whole):
        return reason
    torch = facts.writing.spelling("torch", cut.whole)
    index, width = cut.index, cut.width
    known = isinstance(width, ast.Constant)
    bounds = () if known else ("isinstance({1}, int)", "{1} >= 0")
    rows = Code(
        f"({{0}}.unsqueeze(-1) == {torch}.arange({{1}}, device={{0}}.device)).long()",
        (index, width),
    )
    line = _with(last, cut.whole, rows)
    if line is None:
        return "it stands in a statement that is more than an assignment"
    tests = [f"{torch}.compiler.is_compiling()", *bounds, f"{{0}}.dtype == {torch}.int64", "{0}.numel() > 0"]
    test = f"if {' and '.join(tests)}:"
    if last.col_offset + len(test.format(index.id, ast.unparse(width))) > facts.line_length:
        test = "if (\n    " + "\n    and ".join(tests) + "\n):"
    template = f'{test}\n    {torch}._assert_async(({{0}} >= 0).all(), "{_NEGATIVE}")\n    {line.template}\nelse:'
    return Fix((Enclose(cut.statements, Code(template, (index, width, *line.parts))),))


def _is_for_others(node: ast.AST, facts: Facts) -> bool:
    """Whether ``node`` is what is left for eager code and odd arguments below a clause for compiled code."""
    child = node
    for parent in facts.syntax.ancestors(node):
        if isinstance(parent, ast.If) and child in parent.orelse and isinstance(parent.test, ast.BoolOp):
            first = parent.test.values[0]
            asked = facts.syntax.qualified(first.func) if isinstance(first, ast.Call) else None
            if isinstance(parent.test.op, ast.And) and asked == "torch.compiler.is_compiling":
                return True
        child = parent
    return False


def _with(statement: ast.stmt, whole: ast.expr, rows: Code) -> Code | None:
    """``statement`` with ``rows`` for ``whole``; its holes come behind two others."""
    match statement:
        case ast.Return(value=ast.expr() as value):
            return Code("return {2}", (_code(value, whole, rows),))
        case ast.Assign(targets=[ast.Name() as target], value=value):
            return Code(f"{target.id} = {{2}}", (_code(value, whole, rows),))
    return None


def _code(value: ast.expr, whole: ast.expr, rows: Code) -> Code:
    made = filled(value, {whole: rows})
    return made if isinstance(made, Code) else Code("{0}", (made,))
