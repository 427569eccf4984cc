"""What lists the places where something is not zero: ``nonzero``, ``argwhere``, ``torch.where`` of one argument."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax

_METHODS = {"nonzero": "torch.nonzero", "argwhere": "torch.argwhere"}


def listed(e: ast.AST, syntax: Syntax) -> tuple[ast.expr, bool] | None:
    """Of what ``e`` lists the places, and whether as a tuple with a tensor for each dimension; None for anything else.

    Of a method, it is not asked whether it is one of a tensor.
    """
    if not isinstance(e, ast.Call):
        return None
    what, args = syntax.qualified(e.func), list(e.args)
    if what is None and isinstance(e.func, ast.Attribute):
        what = _METHODS.get(e.func.attr)
        args.insert(0, e.func.value)
    if what == "torch.where" and len(args) == 1 and not e.keywords:
        return args[0], True
    flags = {k.arg: k.value for k in e.keywords}
    flag = flags.pop("as_tuple", ast.Constant(False))
    if what not in _METHODS.values() or len(args) != 1 or flags or not isinstance(flag, ast.Constant):
        return None
    return args[0], bool(flag.value)
