"""What an expression is in terms of the attributes of one object, with the local names in it written out."""

from __future__ import annotations

import ast

from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import Syntax

#: Calls that make a 0-d tensor of a number.
MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.scalar_tensor"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


def instance_terms(
    e: ast.expr, instance: frozenset[Definition], syntax: Syntax, flow: Flow, depth: int = 40
) -> ast.expr | None:
    """``e``, a number or a tensor of one, with what ``instance`` binds called self; None when that cannot be."""
    if depth == 0:
        return None

    def again(part: ast.expr) -> ast.expr | None:
        return instance_terms(part, instance, syntax, flow, depth - 1)

    match e:
        case ast.Constant():
            return e
        case ast.Name():
            found = flow.reaching.get(e, frozenset())
            if found and found == instance:
                return ast.Name("self", ast.Load())
            d = next(iter(found)) if len(found) == 1 else None
            if d is None or d.how != "assign" or d.path or d.value is None:
                return None
            return again(d.value)
        case ast.Call(args=[number, *_]) if syntax.qualified(e.func) in MAKERS or ast.unparse(e.func) == "int":
            inside = again(number)
            if inside is None:
                return inside
            return ast.Call(ast.Name("int", ast.Load()), [inside], [])
        case ast.Attribute(value=base, attr=attr):
            inside = again(base)
            return None if inside is None else ast.Attribute(inside, attr, ast.Load())
        case ast.Subscript(value=base, slice=index):
            a, b = again(base), again(index)
            return None if a is None or b is None else ast.Subscript(a, b, ast.Load())
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            a, b = again(left), again(right)
            return None if a is None or b is None else ast.BinOp(a, op, b)
    return None
