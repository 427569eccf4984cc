"""Operations whose result lies in memory as what they are given does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

#: Functions and methods of one tensor, element by element.
_POINTWISE = frozenset(
    "abs exp log sqrt rsqrt tanh sigmoid relu sin cos square neg clamp clamp_min clamp_max clip nan_to_num mul add sub "
    "div float half double bfloat16 detach clone round floor ceil sign reciprocal softplus gelu silu pow".split()
)
#: Functions, methods and attributes that give elements in another order, or may do so.
_REORDERING = frozenset(
    "einsum permute transpose t T mT H mH adjoint swapaxes swapdims movedim moveaxis rearrange rearrange_many expand "
    "expand_as broadcast_to as_strided unfold scaled_dot_product_attention channels_last channels_last_3d".split()
)


def reorders(nodes: Iterable[ast.AST]) -> bool:
    """Whether something among ``nodes`` gives elements that lie in memory in another order than they are told."""
    named = (
        n.attr if isinstance(n, ast.Attribute) else n.id for n in nodes if isinstance(n, (ast.Attribute, ast.Name))
    )
    return not _REORDERING.isdisjoint(named)


def follows_layout(value: ast.expr, name: str, is_scalar: Callable[[ast.expr], bool]) -> bool:
    """Whether ``value`` is computed from ``name``, element by element, and from scalars."""
    match value:
        case ast.Name(id=id):
            return id == name
        case ast.UnaryOp(operand=operand):
            return follows_layout(operand, name, is_scalar)
        case ast.BinOp(left=left, right=right):
            scalars = [is_scalar(e) for e in (left, right)]
            sides = [s or follows_layout(e, name, is_scalar) for s, e in zip(scalars, (left, right), strict=True)]
            return all(sides) and not all(scalars)
        case ast.Call(func=ast.Attribute(value=held, attr=attr), args=args, keywords=[]) if attr in _POINTWISE:
            if isinstance(held, ast.Name) and held.id == "torch" and args:
                held, args = args[0], args[1:]
            return follows_layout(held, name, is_scalar) and all(map(is_scalar, args))
    return False
