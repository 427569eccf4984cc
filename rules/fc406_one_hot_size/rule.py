"""FC406: one-hot rows that are made as wide as the data asks for, and cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc406_one_hot_size.examples import INVALID, VALID

_LARGEST = frozenset({"max", "amax"})


class OneHotSize(Rule):
    """``F.one_hot(index, max(index.max() + 1, n))[..., :n]``: classes beyond ``n`` are made and thrown away.

    What it does:
        Compares the index with each of the ``n`` classes: a class beyond them is a row of zeros either way.

    Why it breaks compilation:
        ``max`` of a tensor and a number reads the tensor, and the size of what ``one_hot`` makes is read from data:
        the graph breaks at both, with and without the settings that capture numbers.

    Fix safety:
        Unsafe. The rows are the same integers of the same shape for indices of int64 that are not negative, where there
        is one at least; ``one_hot`` raises for all others. Rows that were cut have gaps between them, the new ones have
        none. Not fixed where the larger of both numbers is worked out in another statement.

    References:
        PyTorch, ``torch.nn.functional.one_hot``; "Data dependent operator" (graph break GB0027).
    """

    code = "FC406"
    name = "one-hot-size"
    triggers = (b"one_hot",)
    listens_to = (ast.Subscript,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it cuts one-hot rows, in compiled code, that are as wide as data asks for."""
        assert isinstance(node, ast.Subscript)
        match node:
            case ast.Subscript(
                value=ast.Call(args=[ast.Name() as index, *more], keywords=named) as made, ctx=ast.Load()
            ):
                classes = next(iter([*more, *(k.value for k in named)]), None)
            case _:
                return
        match node.slice:
            case ast.Tuple(elts=[ast.Constant(value=dots), ast.Slice(lower=None, upper=ast.expr() as n, step=None)]):
                ours = dots is ... and facts.syntax.qualified(made.func) == "torch.nn.functional.one_hot"
            case _:
                return
        limits = classes.args if isinstance(classes, ast.Call) and facts.syntax.builtin(classes) == "max" else []
        others = [e for e in limits if ast.dump(e) != ast.dump(n)]
        if not ours or len(limits) != 2 or len(others) != 1 or not _is_largest(others[0], index, facts):
            return
        message = "the number of classes is read from data: graph break; those above the limit are thrown away"
        arange = facts.writing.spelling("torch.arange", node)
        rows = Code(f"({{0}}.unsqueeze(-1) == {arange}({{1}}, device={{0}}.device)).long()", (index, n))
        granted = f"`{index.id}` holds int64, one number at least and no negative one, and nobody looks at strides"
        yield Finding(node, message, Fix((Replace(node, rows),), Applicability.UNSAFE), granted)

    invalid = INVALID
    valid = VALID


def _is_largest(e: ast.expr, index: ast.Name, facts: Facts) -> bool:
    """Whether ``e`` is the largest element of ``index``, or more by a written number."""
    match e:
        case (
            ast.BinOp(left=inner, op=ast.Add(), right=ast.Constant())
            | ast.BinOp(left=ast.Constant(), op=ast.Add(), right=inner)
        ):
            return _is_largest(inner, index, facts)
        case ast.Name():
            found = [d.value for d in facts.inference.definitions(e) if d.how == "assign" and not d.path]
            return len(found) == 1 and found[0] is not None and _is_largest(found[0], index, facts)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return _is_largest(inner, index, facts)
        case ast.Call(func=ast.Attribute(value=ast.Name() as held, attr=attr), args=[]) if attr in _LARGEST:
            return held.id == index.id and facts.inference.definitions(held) == facts.inference.definitions(index)
        case ast.Call(func=func, args=[ast.Name() as held]):
            ours = facts.syntax.qualified(func) in {f"torch.{name}" for name in _LARGEST}
            return ours and facts.inference.definitions(held) == facts.inference.definitions(index)
        case ast.Call(args=[inner]) if facts.syntax.builtin(e) == "int":
            return _is_largest(inner, index, facts)
    return False
