"""How many dimensions a tensor has at least, by what is done with it: ``x.shape[2]`` fails with fewer than three."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax
from patcher.facts.syntax.written import integer

#: What is told dimensions by their numbers, and takes 0 and -1 of a tensor without any.
_BY_NUMBER = frozenset("sum mean any all amax amin argmax argmin softmax cumsum transpose swapaxes chunk".split())
#: Methods that change the sizes of the tensor itself.
RESHAPING = frozenset(
    "unsqueeze_ squeeze_ t_ transpose_ swapaxes_ swapdims_ resize_ resize_as_ set_ as_strided_ swap_tensors".split()
)


def least_dimensions(use: ast.expr, syntax: Syntax) -> int:
    """How many dimensions ``use`` must have for the expression right around it to return, whatever its sizes."""
    parent = syntax.parents[use]
    match parent:
        case ast.Subscript(value=value, slice=index) if value is use:
            return _indexed(index)
        case ast.BinOp(op=ast.MatMult()):
            return 1
        case ast.Attribute(attr="shape"):
            return _sizes(parent, syntax)
        case ast.Attribute(attr="size"):
            call = syntax.parents[parent]
            if isinstance(call, ast.Call) and not call.keywords:
                return _size(integer(call.args[0])) if call.args else _sizes(call, syntax)
    outer = syntax.parents[parent] if isinstance(parent, ast.Attribute) else None
    if isinstance(parent, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is parent:
        if parent.attr == "permute":
            return len(outer.args) if len(outer.args) > 1 and not any(map(_starred, outer.args)) else 0
        if parent.attr in _BY_NUMBER:
            return max((n for a in outer.args[:2] if (n := _size(integer(a))) > 1), default=0)
    return 0


def unconditional(node: ast.AST, syntax: Syntax) -> bool:
    """Whether ``node`` is evaluated by every call of its function that returns."""
    child = node
    for parent in syntax.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            before = parent.body[: parent.body.index(child)] if child in parent.body else parent.body
            return not any(map(syntax.leaves, before))
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            return False
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return False
        if isinstance(parent, (ast.For, ast.While, ast.Try, ast.Match, ast.Lambda, ast.comprehension, ast.ClassDef)):
            return False
        if isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return False
        child = parent
    return False


def _indexed(index: ast.expr) -> int:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    new = [p for p in parts if isinstance(p, ast.Constant) and (p.value is None or p.value is ... or p.value is True)]
    plain = all(isinstance(p, ast.Slice) or p in new or integer(p) is not None for p in parts)
    return len(parts) - len(new) if plain else 0


def _sizes(shape: ast.expr, syntax: Syntax) -> int:
    parent = syntax.parents[shape]
    match parent:
        case ast.Subscript(slice=index):
            return _size(integer(index))
        case ast.Assign(targets=[ast.Tuple(elts=parts)]) if not any(map(_starred, parts)):
            return len(parts)
    return 0


def _size(dimension: int | None) -> int:
    """How many dimensions there are when the size of that one can be read."""
    return 0 if dimension is None else dimension + 1 if dimension >= 0 else -dimension


def _starred(e: ast.expr) -> bool:
    return isinstance(e, ast.Starred)
