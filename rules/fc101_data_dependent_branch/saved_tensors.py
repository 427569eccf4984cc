"""What a backward pass needs as it was: the tensors that an expression's operations keep."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator


def kept_by(e: ast.expr, is_number: Callable[[ast.expr], bool]) -> Iterator[ast.expr]:
    """The names and attributes in ``e`` that an operation in it may keep; sums and multiples by a number keep none."""
    match e:
        case ast.Name() | ast.Constant():
            return
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            yield from kept_by(left, is_number)
            yield from kept_by(right, is_number)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if is_number(right):
            yield from kept_by(left, is_number)
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if is_number(left):
            yield from kept_by(right, is_number)
        case ast.UnaryOp(operand=operand):
            yield from kept_by(operand, is_number)
        case ast.Attribute(value=ast.Name()):
            return
        case _:
            named = (n for n in ast.walk(e) if isinstance(n, (ast.Name, ast.Attribute)))
            yield from (n for n in named if isinstance(n.ctx, ast.Load))
