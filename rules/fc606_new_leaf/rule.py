"""FC606: a tensor that is made to ask for gradients, in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc606_new_leaf.examples import INVALID, VALID
from rules.fc606_new_leaf.leaves import Leaves


class NewLeaf(Rule):
    """``loss = torch.tensor(0.0, requires_grad=True)``: what a sum begins with, in ``forward``, asks for gradients.

    What it does:
        Compiled code makes it without: ``requires_grad=not torch.compiler.is_compiling()``. In eager code all stays.
        ``made.requires_grad_()`` of a tensor that is computed there is told the same.

    Why it breaks compilation:
        A graph cannot make a tensor that gradients are collected in: "Attempted to use tensor creation function with
        requires_grad=True" ends it, in every layer that begins a sum like that. ``.requires_grad_()`` behind it ends
        it as well, as soon as what is computed leaves the graph.

    Fix safety:
        Unsafe. Nobody here asks for the gradient of the new tensor where it is only an operand of ``+``, ``-``, ``*``
        and ``/``, or handed back; a caller might. And what comes out of compiled code needs gradients only where
        something else that went in does: ``backward()`` of the loss of a model without anything to train is an error
        then. Reported only where more is done with the tensor: calls, methods, ``torch.autograd.grad``, assignments in
        place.

    References:
        PyTorch, "Attempted to use tensor creation function with requires_grad=True"; losses of routing layers.
    """

    code: ClassVar[str] = "FC606"
    name: ClassVar[str] = "new-leaf"
    triggers: ClassVar[tuple[bytes, ...]] = (b"requires_grad",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the call ``node`` when it makes a tensor that asks for gradients."""
        assert isinstance(node, ast.Call)
        leaf = facts.ask(Leaves).of(node)
        if leaf is None:
            return
        message = "a graph cannot make a tensor that asks for gradients: it ends here"
        compiling = facts.writing.spelled("torch.compiler.is_compiling", node)
        if leaf.reason or compiling is None:
            yield Finding(node, message, assumption=leaf.reason or "`torch` is not imported above it")
            return
        if leaf.asked is None:
            assert leaf.told is not None
            edit = Replace(node, Code(f"{{0}}.requires_grad_(not {compiling}())", (leaf.told,)))
        else:
            always = isinstance(leaf.asked, ast.Constant)
            code = Code(f"not {compiling}()") if always else Code(f"not {compiling}() and {{0}}", (leaf.asked,))
            edit = Replace(leaf.asked, code)
        assumption = "nobody asks for its gradient, and what is computed with it needs none for its sake alone"
        yield Finding(node, message, Fix((edit,), Applicability.UNSAFE), assumption)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID
