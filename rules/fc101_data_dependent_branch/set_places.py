"""Masks that are made of a mask with no place set: none of theirs is set, or all of them are."""

from __future__ import annotations

import ast
from collections.abc import Callable

from patcher.facts.syntax.written import integer, is_none, is_whole

#: What moves the places of a mask about, repeats or converts them.
_MOVING = frozenset(
    "unsqueeze squeeze expand expand_as view view_as reshape reshape_as flatten transpose permute repeat tile "
    "broadcast_to bool contiguous clone detach".split()
)

Qualified = Callable[[ast.expr], str | None]


def none_set(mask: ast.expr, masks: frozenset[str], qualified: Qualified) -> bool:
    """Whether ``mask`` has no place set where those that are spelled as one of ``masks`` have none."""
    if ast.unparse(mask) in masks:
        return True
    if (inner := moved(mask, qualified)) is not None:
        return none_set(inner, masks, qualified)
    match mask:
        case (
            ast.UnaryOp(op=ast.Invert(), operand=operand)
            | ast.Call(func=ast.Attribute(value=operand, attr="logical_not"), args=[], keywords=[])
        ):
            return all_set(operand, masks, qualified)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return none_set(left, masks, qualified) or none_set(right, masks, qualified)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return none_set(left, masks, qualified) and none_set(right, masks, qualified)
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.Gt()], comparators=[zero]) if integer(zero) == 0:
            return none_set(left, masks, qualified)
    return False


def all_set(mask: ast.expr, masks: frozenset[str], qualified: Qualified) -> bool:
    """Whether every place of ``mask`` is set where those that are spelled as one of ``masks`` have none."""
    if ast.unparse(ast.UnaryOp(ast.Invert(), mask)) in masks:
        return True
    if (inner := moved(mask, qualified)) is not None:
        return all_set(inner, masks, qualified)
    match mask:
        case (
            ast.UnaryOp(op=ast.Invert(), operand=operand)
            | ast.Call(func=ast.Attribute(value=operand, attr="logical_not"), args=[], keywords=[])
        ):
            return none_set(operand, masks, qualified)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return all_set(left, masks, qualified) or all_set(right, masks, qualified)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[zero]) if integer(zero) == 0:
            return none_set(left, masks, qualified)
    return False


def moved(mask: ast.expr, qualified: Qualified) -> ast.expr | None:
    """The mask whose places ``mask`` has in another order or shape; None where it is made in another way."""
    match mask:
        case ast.Call(func=func, args=[first, *_]) if (what := qualified(func)) is not None:
            package, _, name = what.rpartition(".")
            return first if package == "torch" and name in _MOVING else None
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _MOVING:
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="to" | "type"), args=args, keywords=[]):
            stays = (
                qualified(a) == "torch.bool" or (isinstance(a, ast.Attribute) and a.attr == "device") for a in args
            )
            return inner if all(stays) else None
        case ast.Subscript(value=inner, slice=at):
            parts = at.elts if isinstance(at, ast.Tuple) else [at]
            plain = (is_whole(p) or is_none(p) or isinstance(p, ast.Slice) or integer(p) is not None for p in parts)
            return inner if all(plain) else None
    return None


def cannot_fail(mask: ast.expr, masks: frozenset[str]) -> bool:
    """Whether ``mask``, made of one of ``masks``, is made in a way that takes a tensor of any shape."""
    if ast.unparse(mask) in masks:
        return True
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return cannot_fail(inner, masks) or f"~{ast.unparse(inner)}" in masks
        case ast.Call(func=ast.Attribute(value=inner, attr="bool"), args=[], keywords=[]):
            return cannot_fail(inner, masks)
        case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze"), args=[at], keywords=[]):
            return integer(at) in (0, -1) and cannot_fail(inner, masks)
        case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)):
            whole = all(is_none(p) or (isinstance(p, ast.Constant) and p.value is ...) for p in parts)
            return whole and cannot_fail(inner, masks)
    return ast.unparse(ast.UnaryOp(ast.Invert(), mask)) in masks
