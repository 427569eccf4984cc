"""What a function or a class is to be given, and what an expression in its source comes to."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.newcase.tree import Seen, Tree

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
UNKNOWN = object()


@dataclass(frozen=True)
class Parameter:
    """``hint``: its annotation as it is written, or "". ``default``: its expression, None for none."""

    name: str
    hint: str = ""
    default: ast.expr | None = None
    named_only: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is None


def parameters(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Those of a method, without ``self``; what is gathered (``*args``) is left out."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    found = [_parameter(a, d, False) for a, d in zip(plain, defaults, strict=True)][1:]
    return (*found, *(_parameter(a, d, True) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)))


def constructor(tree: Tree, seen: Seen) -> tuple[Parameter, ...]:
    """What a class is built with: the parameters of ``__init__``, or the fields of a dataclass."""
    if seen.is_dataclass and seen.method("__init__") is None:
        fields: dict[str, Parameter] = {}
        for above in reversed(tree.above(seen)):
            for node in above.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    hint = ast.unparse(node.annotation)
                    if "ClassVar" not in hint:
                        fields[node.target.id] = Parameter(node.target.id, hint, node.value)
        return tuple(fields.values())
    found = tree.method(seen, "__init__")
    return parameters(found[1]) if found else ()


def worth(expression: ast.expr | None, known: Mapping[str, object]) -> object:
    """What an expression comes to with what is known of names and attributes (``config.width``); ``UNKNOWN``."""
    if expression is None:
        return UNKNOWN
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name | ast.Attribute):
        return known.get(ast.unparse(expression).removeprefix("self."), UNKNOWN)
    if isinstance(expression, ast.Tuple | ast.List):
        inside = [worth(item, known) for item in expression.elts]
        return UNKNOWN if UNKNOWN in inside else tuple(inside)
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        value = worth(expression.operand, known)
        return -value if isinstance(value, int | float) else UNKNOWN
    if isinstance(expression, ast.BinOp) and type(expression.op) in _ARITHMETIC:
        left, right = worth(expression.left, known), worth(expression.right, known)
        if type(left) is int and type(right) is int and (right or not isinstance(expression.op, ast.FloorDiv)):
            return _ARITHMETIC[type(expression.op)](left, right)
    if isinstance(expression, ast.Call) and ast.unparse(expression.func) in ("field", "dataclasses.field"):
        return next((worth(k.value, known) for k in expression.keywords if k.arg == "default"), UNKNOWN)
    return UNKNOWN


def _parameter(argument: ast.arg, default: ast.expr | None, named_only: bool) -> Parameter:
    hint = ast.unparse(argument.annotation) if argument.annotation else ""
    return Parameter(argument.arg, hint.strip("'\""), default, named_only)
