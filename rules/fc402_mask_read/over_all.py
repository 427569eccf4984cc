"""What modules do to the rows that a mask selects, written over all rows, for compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.masks.row_regions import RowRegion, parts
from patcher.rule import Code, respelled

_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def static(region: RowRegion, rows: str, picked: str) -> Iterator[Code]:
    """What ``region`` does, over all rows. ``rows``, ``picked``: names for rows and their mask."""
    reads: dict[ast.AST, Code] = {r: _read(r) for r in region.reads}
    for step in region.steps:
        value = respelled(step.value, reads)
        if step.into is None:
            yield Code(f"{', '.join(step.names)} = {{0}}", (value,))
            continue
        old = _row_by_row(step.into, step.mask)
        changed = Code(f"{{0}} {_SIGNS[type(step.op)]} {{1}}", (old, value)) if step.op is not None else value
        yield Code(f"{rows} = {{0}}", (changed,))
        yield Code(f"{picked} = {{0}}.reshape({rows}.shape[0], *[1] * ({rows}.dim() - 1))", (step.mask,))
        merged = Code(f"torch.where({picked}, {rows}, {{0}}).reshape({{1}}.shape)", (old, step.into))
        yield Code("{0} = {1}" if step.anew else "{0}.copy_({1})", (step.into, merged))


def _read(r: ast.Subscript) -> Code:
    mask, *others = parts(r.slice)
    picked = f"[:, {', '.join(map(ast.unparse, others))}]" if others else ""
    return Code(f"{{0}}{picked}.clone()", (_row_by_row(r.value, mask),))


def _row_by_row(e: ast.expr, mask: ast.expr) -> Code:
    """``e``, which ``mask`` fits, with one row after the other."""
    shaped = mask.operand if isinstance(mask, ast.UnaryOp) else mask  # which has the shape of what it turns
    return Code("{0}.flatten(0, {1}.dim() - 1)", (e, shaped))
