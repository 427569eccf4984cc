"""Templates of new code, filled with expressions of the source, in parentheses where these are needed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from patcher.rule import Code

_HOLE = re.compile(r"\{(\d+)\}")
_PLACE = re.compile(r"^__part_(\d+)__$")
_NUMBERS = (cst.Integer, cst.Float)
_TEXTS = (cst.SimpleString, cst.FormattedString)
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseList, cst.BaseDict, cst.BaseSet, *_NUMBERS, *_TEXTS)
_TIGHT = (cst.Attribute, cst.Subscript, cst.Call, cst.UnaryOperation, cst.BinaryOperation, cst.Comparison, cst.Await)
_LOOSE = (cst.Lambda, cst.NamedExpr, cst.IfExp, cst.Yield, cst.GeneratorExp)


def with_places(code: Code) -> str:
    """The template as Python, with a name for each part."""
    text = _HOLE.sub(lambda m: f"__part_{m[1]}__", code.template)
    return text.replace("{{", "{").replace("}}", "}")


def filled(tree: cst.CSTNode, parts: Sequence[cst.BaseExpression]) -> cst.CSTNode:
    """The tree of a template with its parts."""
    new = tree.visit(_Fill(parts))
    assert isinstance(new, cst.CSTNode)
    return new


class _Fill(cst.CSTTransformer):
    """Puts the parts into their places, in parentheses where the place binds tighter."""

    def __init__(self, parts: Sequence[cst.BaseExpression]) -> None:
        self.parts = parts
        self.stack: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.stack.append(node)
        return True

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        self.stack.pop()
        if isinstance(updated, cst.Name) and (place := _PLACE.match(updated.value)):
            part = self.parts[int(place[1])].deep_clone()
            return fit(part, self.stack[-1], original) if self.stack else part
        if isinstance(updated, cst.IndentedBlock):
            return updated.with_changes(indent=None)  # as the module indents
        if isinstance(updated, cst.EmptyLine) and updated.comment is None:
            return updated.with_changes(indent=False)
        return updated


def fit(new: cst.BaseExpression, parent: cst.CSTNode, place: cst.CSTNode) -> cst.BaseExpression:
    """``new`` in parentheses when it would not keep its meaning (or its lines) in ``place`` under ``parent``."""
    if new.lpar:
        return new
    atom = isinstance(new, _ATOMS) and not (isinstance(new, _NUMBERS) and isinstance(parent, cst.Attribute))
    if getattr(place, "lpar", ()):
        return new.with_changes(lpar=place.lpar, rpar=place.rpar)  # type: ignore[attr-defined]
    if isinstance(new, cst.Tuple):
        wrap = not isinstance(parent, (cst.Assign, cst.Return, cst.Index))
    elif isinstance(parent, cst.Call) and parent.func is not place:
        wrap = isinstance(new, cst.NamedExpr)
    elif isinstance(parent, _TIGHT):
        wrap = not atom
    elif isinstance(parent, (cst.Arg, cst.Assign, cst.Return, cst.Expr, cst.Index)):
        wrap = isinstance(new, (cst.NamedExpr, cst.Yield))
    else:
        wrap = isinstance(new, _LOOSE)
        wrap |= isinstance(parent, cst.BooleanOperation) and isinstance(new, cst.BooleanOperation)
    if not wrap and not atom and _spans_lines(new) and not isinstance(parent, cst.Arg):
        wrap = True
    if not wrap:
        return new
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _spans_lines(node: cst.CSTNode) -> bool:
    """Whether ``node`` breaks over lines by the grace of brackets that are not its own."""
    if isinstance(node, cst.ParenthesizedWhitespace):
        return True
    if getattr(node, "lpar", ()) or isinstance(node, (cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set)):
        inner = node.func if isinstance(node, cst.Call) else node.value if isinstance(node, cst.Subscript) else None
        return _spans_lines(inner) if inner is not None and not getattr(node, "lpar", ()) else False
    return any(_spans_lines(c) for c in node.children)
