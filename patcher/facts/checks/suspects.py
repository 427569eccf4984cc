"""What looks like a cause of a graph break: output, reads of tensor data, tests of types and for None; where it stands.

Whether each breaks a graph was measured on PyTorch 2.13: output and reads do where they are traced; tests of types and
for None, assertions with a fixed message and fixed values for masked elements do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patcher.facts.checks.log_calls import log_call
from patcher.facts.syntax.tree import FunctionNode, Syntax
from patcher.facts.tables import torch_api as api
from patcher.facts.values.module_values import Bindings, imported

SuspectKind = Literal[
    "output",  # print, logging, warnings
    "read",  # .item(), .tolist()
    "none",  # a test for None
    "type",  # isinstance
    "assertion",  # on tensor data, with a fixed message or none
]

_READS = frozenset({"item", "tolist"})
#: Attributes of a tensor that Dynamo does not follow.
_NOT_TRACED = frozenset({"grad_fn"})
_PLAIN = (api.REDUCTIONS | api.SMOOTH_SAME | api.PREDICATES) - {"median", "identity_", "dropout_"} | frozenset(
    "eq ne lt le gt ge isclose logical_and logical_or logical_xor size dim numel".split()
)


@dataclass(frozen=True, eq=False)
class Suspect:
    """One place. ``text``: how it is called in a sentence, as Markdown. ``function``: the one that it stands in."""

    node: ast.expr | ast.stmt
    kind: SuspectKind
    text: str
    function: FunctionNode


def suspects(syntax: Syntax) -> Iterator[Suspect]:
    """All of them in the functions of one module. An assertion is one whether its test holds tensor data or not."""
    bindings = Bindings(syntax)
    for call in syntax.by_type[ast.Call]:
        named = _named(call, syntax, bindings)
        if named is not None and (function := syntax.function_of(call)) is not None:
            yield Suspect(call, named[0], named[1], function)
    for test in syntax.by_type[ast.Compare]:
        function = syntax.function_of(test)
        if function is not None and _is_test_for_none(test):
            yield Suspect(test, "none", "tests for None", function)
    for statement in syntax.by_type[ast.Assert]:
        fixed = statement.msg is None or isinstance(statement.msg, ast.Constant)
        function = syntax.function_of(statement)
        if function is not None and fixed and _is_plain_operation(statement.test, syntax):
            yield Suspect(statement, "assertion", "`assert` on tensor data, with a fixed message", function)


def _is_test_for_none(test: ast.Compare) -> bool:
    about_none = [isinstance(c, ast.Constant) and c.value is None for c in test.comparators]
    return about_none == [True] and isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_lookup(test.left)


def _is_lookup(e: ast.expr) -> bool:
    """Whether ``e`` is a name, an attribute or an item, so that looking it up runs nothing that may break."""
    while isinstance(e, (ast.Attribute, ast.Subscript)):
        if isinstance(e, ast.Subscript) and not isinstance(e.slice, (ast.Constant, ast.Name, ast.UnaryOp)):
            return False
        if isinstance(e, ast.Attribute) and e.attr in _NOT_TRACED:
            return False
        e = e.value
    return isinstance(e, ast.Name)


def _is_plain_operation(e: ast.expr, syntax: Syntax) -> bool:
    """Whether ``e`` is made of comparisons, arithmetic and reductions, whose results have a fixed shape.

    ``not``, ``and`` and ``or`` read the tensor in Python: that is a branch, which breaks the graph.
    """
    for n in ast.walk(e):
        if isinstance(n, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.Subscript)):
            return False
        if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not):
            return False
        if isinstance(n, ast.Call):
            what = imported(syntax, n.func)
            known = what.removeprefix("torch.") if what is not None else getattr(n.func, "attr", "")
            if known not in _PLAIN:
                return False
    return True


def _named(call: ast.Call, syntax: Syntax, bindings: Bindings) -> tuple[SuspectKind, str] | None:
    func = call.func
    if isinstance(func, ast.Name) and func.id == "isinstance" and syntax.is_builtin(func):
        return ("type", "`isinstance`") if call.args and _is_lookup(call.args[0]) else None
    if isinstance(func, ast.Attribute) and func.attr in _READS and not call.args and not call.keywords:
        return "read", f"`.{func.attr}()`"
    written = log_call(call, syntax, bindings)
    return ("output", f"`{written}`") if written is not None else None
