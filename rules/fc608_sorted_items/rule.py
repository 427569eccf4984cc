"""FC608: the items of a dict, put in order together with their values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc608_sorted_items.examples import INVALID, VALID


class SortedItems(Rule):
    """``sorted(kwargs.items())``: names in their order, with tensors behind them.

    What it does:
        Says that the names alone decide: ``sorted(kwargs.items(), key=lambda item: item[0])``.

    Why it breaks compilation:
        Dynamo sorts what it knows; a pair of a name and a tensor it does not ("sort with non-constant keys"): the graph
        ends, in each object that is made like that.

    Fix safety:
        Safe for ``**kwargs``, and for local names of dicts that were written out: no two keys of a dict are equal, so
        that the comparison of two items never gets to the values. Left alone: other objects, which may have items of
        another kind, and calls that say by what they sort.

    References:
        PyTorch, "sort with non-constant keys" (graph break GB0207).
    """

    code: ClassVar[str] = "FC608"
    name: ClassVar[str] = "sorted-items"
    triggers: ClassVar[tuple[bytes, ...]] = (b"sorted(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

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
            yield Finding(
                node, "names and tensors are sorted together: the graph ends here", Fix((Replace(node, code),))
            )

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


def _is_literal(made: ast.Dict) -> bool:
    return bool(made.values) and all(isinstance(v, ast.Constant) for v in made.values)
