"""FC609: whether a tensor asks for gradients, set in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Enclose, Finding, Fix, ReplaceStatements, Rule
from rules.fc609_gradients_asked.asked import Asked, Asking
from rules.fc609_gradients_asked.examples import INVALID, VALID


class GradientsAsked(Rule):
    """``t.requires_grad = False`` and ``x.requires_grad_(True)``: a function sets whether a tensor asks for gradients.

    What it does:
        Writes ``t.requires_grad_(False)`` for ``t.requires_grad = False``: the same, said by a method; and above
        ``t.requires_grad = grad``, for ``grad is False``. Where a tensor that came from outside is told to ask for
        gradients, ``x.requires_grad_(True)``, only eager code says so.

    Why it breaks compilation:
        Dynamo takes no assignment to ``requires_grad``, whatever is assigned, not even what holds already; the method
        it takes where it changes nothing. Helpers that make all tensors of a model (``cuda(x, grad=False)``)
        break the graph at each of them, and a check that asks its input for gradients does so in front of everything.

    Fix safety:
        Unsafe. For ``False``, the method does what the attribute does, and whatever else is given is still assigned. To
        whom it belongs has to be a tensor: a module has both, and means another thing by each. What `torch.func`
        transforms (`vmap`, `grad`) refuses the method, and not the attribute. Only reported where it says ``True``: a
        tensor that begins to ask breaks the graph by either.
        What is left to eager code: what comes out of compiled code needs gradients only where something else that went
        in does, and who compiles the model has to ask for its inputs' gradients before the call.

    References:
        PyTorch, "setattr() on Tensor.requires_grad" (graph break GB0206), "Unsupported Tensor.requires_grad_() call"
        (GB0125).
    """

    code = "FC609"
    name = "gradients-asked"
    triggers = (b"requires_grad",)
    listens_to = (ast.Assign, ast.Expr)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the statement ``node`` when it says whether a tensor asks for gradients."""
        assert isinstance(node, (ast.Assign, ast.Expr))
        asked = facts.ask(Asking).of(node)
        if asked is None:
            return
        if isinstance(node, ast.Assign):
            message = "an assignment to `requires_grad` breaks the graph, also of what holds already"
            if asked.reason:
                yield Finding(node, message, assumption=asked.reason)
                return
            fix = Fix((_by_method(node, asked),), Applicability.UNSAFE)
            yield Finding(node, message, fix, f"`{ast.unparse(asked.tensor)}` is a tensor, and what is assigned a bool")
            return
        message = "`requires_grad` of a tensor cannot change in a graph: graph break"
        compiling = facts.writing.spelled("torch.compiler.is_compiling", node)
        if asked.reason or compiling is None:
            yield Finding(node, message, assumption=asked.reason or "`torch` is not imported above it")
            return
        yield Finding(node, message, _left_to_eager(node, compiling), _presumed(asked))

    invalid = INVALID
    valid = VALID


def _by_method(node: ast.Assign, asked: Asked) -> ReplaceStatements | Enclose:
    """The method, where it does what the assignment does: for False. Of what was computed, only that one takes True."""
    if isinstance(asked.value, ast.Constant):
        return ReplaceStatements((node,), (Code("{0}.requires_grad_({1})", (asked.tensor, asked.value)),))
    lines = "if {1} is False:\n    {0}.requires_grad_(False)\nelse:"
    return Enclose((node,), Code(lines, (asked.tensor, asked.value)))


def _left_to_eager(node: ast.Expr, compiling: str) -> Fix:
    return Fix((Enclose((node,), Code(f"if not {compiling}():")),), Applicability.UNSAFE)


def _presumed(asked: Asked) -> str:
    name = ast.unparse(asked.tensor)
    return f"whoever wants gradients of `{name}` asks for them before the call, and none are needed for its sake alone"
