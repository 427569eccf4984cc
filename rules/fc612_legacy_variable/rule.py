"""FC612: tensors wrapped as PyTorch before 0.4 had it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables import torch_api as api
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc612_legacy_variable.examples import INVALID, VALID

_VARIABLE = "torch.autograd.Variable"
#: Methods that make a tensor of their own, which asks for no gradients.
_MADE_BY = frozenset("new_zeros new_ones new_empty new_full new_tensor".split())
#: Functions that do; ``torch.as_tensor`` hands back what it is given.
_MAKERS = api.CREATORS.keys() - api.CONVERTING | {"torch.tensor"}
#: Methods of tensors that give tensors.
_GIVING = (api.TENSOR_ONLY | {"fill", "zero", "new"}) - api.HOST_READS - api.ABOUT


class LegacyVariable(Rule):
    """``Variable(torch.zeros(3))`` and ``isinstance(x, Variable)``: what PyTorch before 0.4 had for tensors.

    What it does:
        Writes ``x.detach()`` for ``Variable(x)``, ``torch.zeros(3)`` for ``Variable(torch.zeros(3))``, and
        ``isinstance(x, torch.Tensor)`` for ``isinstance(x, Variable)``.

    Why it breaks compilation:
        ``Variable`` is a class of C++ that Dynamo does not trace: the graph breaks at each call, and where one is asked
        for by ``isinstance`` the whole function runs eagerly, and nothing says so.

    Fix safety:
        Safe: since 0.4 ``Variable(x)`` is a tensor that shares memory and version counter with ``x`` and asks for no
        gradients, as ``x.detach()`` is, and any tensor is an instance of it. What was made in the same expression and
        never asked for gradients needs no ``detach``. What is no tensor raises another error. Unsafe where ``x`` is not
        known to be a tensor: of ``None`` the original makes an empty one. Left alone with ``requires_grad=True``, by
        which a graph would end as well, and with ``volatile``, which warns.

        A subclass of ``torch.Tensor`` stays one, where ``Variable`` makes a plain tensor of it. The import stays, also
        where nothing uses it any more. Among other classes, ``isinstance(x, (Variable, list))``, Dynamo answers that no
        tensor is one, without a break: compiled code does what eager code does from then on. TorchScript and
        ``torch.export(strict=True)`` take ``isinstance(x, Variable)`` for false, whatever ``x`` is; of the patched code
        they take what eager code does.

    References:
        PyTorch 0.4 migration guide; "Attempted to call function marked as skipped" (graph break GB0007).
    """

    code = "FC612"
    name = "legacy-variable"
    triggers = (b"Variable",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it makes a ``Variable`` in compiled code, or asks for one."""
        assert isinstance(node, ast.Call)
        if facts.syntax.builtin(node) == "isinstance":
            yield from _asked(node, facts)
            return
        if facts.syntax.qualified(node.func) != _VARIABLE:
            return
        message = "`Variable` is not traced: graph break; since PyTorch 0.4 it is a detached tensor"
        if not _is_plain(node):
            yield Finding(node, message, assumption="it is asked for gradients, or given more than a tensor")
            return
        tensor = node.args[0]
        if _asks_for_none(tensor, facts):
            yield Finding(node, message, Fix((Replace(node, Code("{0}", (tensor,))),)))
            return
        if facts.ask(GradientMode).may_be_in_inference_mode(node):
            yield Finding(
                node, message, assumption="in inference mode PyTorch compiles no `detach` of a tensor from outside"
            )
            return
        detached = (Replace(node, Code("{0}.detach()", (tensor,))),)
        if _is_tensor(tensor, facts):
            yield Finding(node, message, Fix(detached))
        else:
            assumption = f"`{ast.unparse(tensor)}` is a tensor, and not None"
            yield Finding(node, message, Fix(detached, Applicability.UNSAFE), assumption)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` makes a ``Variable``."""
        return isinstance(node, ast.Call) and facts.syntax.qualified(node.func) == _VARIABLE

    invalid = INVALID
    valid = VALID


def _asked(node: ast.Call, facts: Facts) -> Iterator[Finding]:
    """Report the ``isinstance`` that asks for a ``Variable``, alone or among others."""
    kinds = node.args[1] if len(node.args) == 2 and not node.keywords else node
    among = list(kinds.elts) if isinstance(kinds, ast.Tuple) else [kinds]
    named = [facts.syntax.qualified(k) for k in among]
    if _VARIABLE not in named or "torch.Tensor" in named:
        return
    written = facts.writing.spelled("torch.Tensor", node)
    message = "the function that asks for a `Variable` runs eagerly; any tensor is one"
    if among[1:]:
        message = "compiled code takes no tensor for a `Variable` among other classes; any tensor is one"
    fix = Fix((Replace(among[named.index(_VARIABLE)], Code(written)),)) if written is not None else None
    yield Finding(node, message, fix, "" if fix else "`torch` is not imported here")


def _is_plain(call: ast.Call) -> bool:
    """Whether ``call`` is given one value, and at most that it asks for no gradients."""
    flags = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "requires_grad")]
    if len(call.args) not in (1, 2) or isinstance(call.args[0], ast.Starred) or len(flags) > 1:
        return False
    if any(k.arg != "requires_grad" for k in call.keywords):
        return False
    return all(isinstance(f, ast.Constant) and f.value is False for f in flags)


def _asks_for_none(e: ast.expr, facts: Facts) -> bool:
    """Whether ``e`` is made where it stands, by itself, and asks for no gradients; or is such a view already."""
    match e:
        case ast.Attribute(attr="data", value=of):
            return facts.value(of).is_tensor
        case ast.Call(func=ast.Attribute(attr="detach", value=of), args=[], keywords=[]):
            return facts.value(of).is_tensor
        case ast.Call(func=func, keywords=keywords):
            if any(k.arg in (None, "requires_grad", "out") for k in keywords):
                return False
            what = facts.syntax.qualified(func)
            if what is not None:
                return what in _MAKERS
            return last_name(func) in _MADE_BY and isinstance(func, ast.Attribute) and facts.value(e).is_tensor
    return False


def _is_tensor(e: ast.expr, facts: Facts) -> bool:
    """Whether ``e`` is a tensor, or calls a method of one that gives one."""
    match e:
        case ast.Call(func=ast.Attribute(value=of, attr=name)) if name.removesuffix("_") in _GIVING:
            return facts.value(e).is_tensor or _is_tensor(of, facts)
        case ast.Attribute(value=of, attr="data" | "T" | "mT"):
            return _is_tensor(of, facts)
    return facts.value(e).is_tensor
