"""FC606: a tensor that is made to ask for gradients, in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc606_new_leaf.examples import INVALID, VALID


class NewLeaf(Rule):
    """``loss = torch.tensor(0.0, requires_grad=True)``: what a sum begins with, in ``forward``, asks for gradients.

    What it does:
        Compiled code makes it without: ``requires_grad=not torch.compiler.is_compiling()``. In eager code all stays.

    Why it breaks compilation:
        A graph cannot make a tensor that gradients are collected in: "Attempted to use tensor creation function with
        requires_grad=True" ends it, in every layer that begins a sum like that.

    Fix safety:
        Unsafe. Somebody may ask for the gradient of the new tensor (``torch.autograd.grad``) or change it in place. And
        what comes out of compiled code needs gradients only where something else that went in does: ``backward()`` of
        the loss of a model without anything to train is an error then.

    References:
        PyTorch, "Attempted to use tensor creation function with requires_grad=True"; losses of routing layers.
    """

    code = "FC606"
    name = "new-leaf"
    triggers = (b"requires_grad",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the call ``node`` when it makes a tensor that asks for gradients."""
        assert isinstance(node, ast.Call)
        asked = next((k.value for k in node.keywords if k.arg == "requires_grad"), None)
        if facts.syntax.qualified(node.func) not in _MAKERS or asked is None or not _may_ask(asked, facts):
            return
        message = "a tensor that requires gradients cannot be made in a graph: graph break"
        compiling = facts.writing.spelled("torch.compiler.is_compiling", node)
        if compiling is None:
            yield Finding(node, message, assumption="`torch` is not imported above it")
            return
        always = isinstance(asked, ast.Constant)
        code = Code(f"not {compiling}()") if always else Code(f"not {compiling}() and {{0}}", (asked,))
        assumption = "nobody asks for its gradient, and what is computed with it needs none for its sake alone"
        yield Finding(node, message, Fix((Replace(asked, code),), Applicability.UNSAFE), assumption)

    invalid = INVALID
    valid = VALID


_MAKERS = frozenset(f"torch.{name}" for name in ("tensor", "zeros", "ones", "full", "zeros_like", "ones_like"))


def _may_ask(asked: ast.expr, facts: Facts) -> bool:
    """Whether ``asked`` is True, or a flag that the caller gives."""
    if isinstance(asked, ast.Name):
        bound = facts.inference.definitions(asked)
        given = bool(bound) and all(d.how == "parameter" for d in bound)
        return given or facts.inference.of(asked).python == "bool"
    return isinstance(asked, ast.Constant) and asked.value is True
