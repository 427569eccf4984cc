"""What a test says of its names: ``x is not None``, ``isinstance(x, torch.Tensor)``, and ``not``, ``and``, ``or``."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator

from patcher.facts.syntax.tree import dotted


class Ruling(enum.Enum):
    """What is known of an object."""

    NONE = "none"
    NOT_NONE = "not none"
    TENSOR = "tensor"
    NOT_TENSOR = "not tensor"


_TENSOR = frozenset({"torch.Tensor", "Tensor"})
#: Types of Python, none of which a tensor is an instance of.
_OF_PYTHON = frozenset("int float complex bool str bytes list tuple dict set frozenset".split())
_IS_TENSOR = frozenset({"torch.is_tensor", "is_tensor"})
#: What asks for the kind of an object: where it stands, the object may be one of several.
_ASKING = frozenset({"isinstance", "hasattr", "callable", "type", "torch.is_storage"}) | _IS_TENSOR


def rulings(test: ast.expr, outcome: bool) -> Iterator[tuple[str, Ruling]]:
    """The names that ``test`` says something of when it is true (``outcome``) or false, and what."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from rulings(operand, not outcome)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is outcome:
            for value in values:
                yield from rulings(value, outcome)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            if (name := _name(left)) is not None:
                yield name, Ruling.NONE if isinstance(op, ast.Is) is outcome else Ruling.NOT_NONE
        case ast.Call(func=func, args=[ast.Name(id=name), *kinds], keywords=[]):
            if _asks_for_tensor(func, kinds):
                yield name, Ruling.TENSOR if outcome else Ruling.NOT_TENSOR
            elif outcome and _asks_for_python(func, kinds):
                yield name, Ruling.NOT_TENSOR


def asks_what_it_is(node: ast.AST) -> bool:
    """Whether ``node`` is a call that asks what kind of object an argument is."""
    return isinstance(node, ast.Call) and dotted(node.func) in _ASKING


def _name(e: ast.expr) -> str | None:
    if isinstance(e, ast.NamedExpr):
        e = e.target
    return e.id if isinstance(e, ast.Name) else None


def _asks_for_tensor(func: ast.expr, kinds: list[ast.expr]) -> bool:
    what = dotted(func)
    if what == "isinstance" and len(kinds) == 1:
        return dotted(kinds[0]) in _TENSOR
    return what in _IS_TENSOR and not kinds


def _asks_for_python(func: ast.expr, kinds: list[ast.expr]) -> bool:
    """Whether it is asked for one of several types of Python, and for nothing else."""
    if dotted(func) != "isinstance" or len(kinds) != 1:
        return False
    asked = kinds[0].elts if isinstance(kinds[0], ast.Tuple) else [kinds[0]]
    return bool(asked) and all(dotted(kind) in _OF_PYTHON for kind in asked)
