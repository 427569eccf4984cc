"""FC608: the items of a dict, put in order together with their values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc608_sorted_items.examples import INVALID, VALID

_READING = frozenset("items keys values get pop copy".split())
_DIFFERENT = "no two keys of the dict are equal, as two tensors may be"


class SortedItems(Rule):
    """``sorted(kwargs.items())``: names in their order, with tensors behind them.

    What it does:
        Says that the names alone decide: ``sorted(kwargs.items(), key=lambda item: item[0])``.

    Why it breaks compilation:
        Dynamo sorts what it knows; a pair of a name and a tensor it does not ("sort with non-constant keys"): the graph
        ends, in each object that is made like that. PyTorch 2.14 does (all examples were run there).

    Fix safety:
        Safe for ``**kwargs``, and for local names of dicts that were written out, where all keys are names or
        constants: no two of them are equal, so that the comparison of two items never gets to the values. Unsafe where
        other keys may be in the dict, such as tensors, of which a dict may hold two that are equal. Left alone: other
        objects, which may have items of another kind, and calls that say by what they sort.

    References:
        PyTorch, "sort with non-constant keys" (graph break GB0207).
    """

    code: ClassVar[str] = "FC608"
    name: ClassVar[str] = "sorted-items"
    triggers: ClassVar[tuple[bytes, ...]] = (b"sorted(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    fixed_in: ClassVar[tuple[int, int] | None] = (2, 14)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it sorts the items of a dict in compiled code."""
        match node:
            case ast.Call(func=ast.Name(id="sorted") as function, args=[items], keywords=keywords):
                pass
            case _:
                return
        match items:
            case ast.Call(func=ast.Attribute(value=ast.Name() as held, attr="items"), args=[], keywords=[]):
                pass
            case _:
                return
        if any(k.arg != "reverse" for k in keywords) or not facts.syntax.is_builtin(function):
            return
        if _is_dict(held, facts):
            reverse = "".join(f", reverse={{{i}}}" for i, _ in enumerate(keywords, 1))
            parts = (items, *(k.value for k in keywords))
            code = Code(f"sorted({{0}}{reverse}, key=lambda item: item[0])", parts)
            message = "names and tensors are sorted together: the graph ends here"
            edits = (Replace(node, code),)
            if _has_names(held, facts):
                yield Finding(node, message, Fix(edits))
            else:
                yield Finding(node, message, Fix(edits, Applicability.UNSAFE), assumption=_DIFFERENT)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _is_dict(name: ast.Name, facts: Facts) -> bool:
    """Whether ``name`` is a plain dict for sure, with more than literals in it."""
    function = facts.syntax.function_of(name)
    if function is None:
        return False
    flow = facts.flow(function)
    found = flow.reaching.get(name, frozenset())
    if not found or name.id in flow.captured | flow.shared:
        return False
    collected = function.args.kwarg
    made = [d.value for d in found if d.node is not collected]
    whole = all(d.node is collected or (d.how == "assign" and not d.path) for d in found)
    return whole and all(isinstance(v, ast.DictComp) or (isinstance(v, ast.Dict) and not _is_literal(v)) for v in made)


def _has_names(name: ast.Name, facts: Facts) -> bool:
    """Whether names and constants alone are keys of the dict ``name``, which nobody else fills."""
    function = facts.syntax.function_of(name)
    assert function is not None
    flow = facts.flow(function)
    found = flow.reaching.get(name, frozenset())
    if not all(d.value is None or (isinstance(d.value, ast.Dict) and all(map(_is_name, d.value.keys))) for d in found):
        return False
    return all(_leaves(use, facts) for d in found for use in flow.uses.get(d, []))


def _is_name(key: ast.expr | None) -> bool:
    return isinstance(key, (ast.Constant, ast.JoinedStr))


def _leaves(use: ast.Name, facts: Facts) -> bool:
    """Whether ``use`` of a dict gives it no key but a name or a constant."""
    match facts.syntax.parents[use]:
        case ast.Attribute(attr=attr) as method:
            call = facts.syntax.parents[method]
            return attr in _READING and isinstance(call, ast.Call) and call.func is method
        case ast.Subscript(value=held, slice=key, ctx=ctx):
            return held is use and (not isinstance(ctx, ast.Store) or _is_name(key))
        case ast.keyword(arg=None) | ast.Compare():
            return True
        case ast.Call() as call:
            return facts.syntax.builtin(call) in ("len", "bool", "sorted", "list", "dict")
    return False


def _is_literal(made: ast.Dict) -> bool:
    return bool(made.values) and all(isinstance(v, ast.Constant) for v in made.values)
