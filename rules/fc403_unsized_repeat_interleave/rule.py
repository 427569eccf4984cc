"""FC403: ``repeat_interleave`` with a tensor of repeats, without the size of the result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.syntax.tree import last_name
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc403_unsized_repeat_interleave.examples import INVALID, VALID

_FROM_LIST = frozenset({"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor"})
_KEEPING = frozenset({"to", "long", "int", "cuda", "cpu", "contiguous"})


class UnsizedRepeatInterleave(Rule):
    """``repeat_interleave`` whose repeats are a tensor, without ``output_size``.

    What it does:
        Adds ``output_size`` where the host knows it: the repeats were made of a Python list, or the result meets
        ``torch.arange(n)`` in an operator.

    Why it breaks compilation:
        Without it, the size of the result is read from the device: the graph breaks there, and a GPU waits.

    Fix safety:
        Unsafe: a wrong size is an error on a CPU, but not on a GPU. A total that is known on the device only is
        reported, not rewritten.

    References:
        PyTorch, ``torch.repeat_interleave``: "output_size ... will avoid stream synchronization"; graph break GB0036.
    """

    code = "FC403"
    removed_by = ("capture_dynamic_output_shape_ops",)
    name = "unsized-repeat-interleave"
    triggers = (b"repeat_interleave",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it repeats by a tensor in compiled code."""
        assert isinstance(node, ast.Call)
        if (repeats := _repeats(node, facts)) is None:
            return
        message = "the length of the result is data-dependent: graph break"
        if (counts := _list_of(repeats, facts)) is not None and not facts.writing.why_not_builtin("sum"):
            size = Code("sum({0})", (counts,))
            granted = f"`{counts.id}` is a list of ints, one for each place that is repeated, and stays as it is"
        elif (beside := _beside(node, facts)) is not None:
            size = Code("{0}", (beside,))
            granted = f"the result has `{ast.unparse(beside)}` elements, like what it meets there"
        else:
            yield Finding(node, message, assumption="the number of repeats is known on the device only")
            return
        given = [f"{{{i + 2}}}" for i in range(len(node.args))]
        given += [f"{k.arg}={{{i}}}" for i, k in enumerate(node.keywords, len(node.args) + 2)]
        spelled = ", ".join([*given, f"output_size={size.template}"])
        parts = (*size.parts, node.func, *node.args, *(k.value for k in node.keywords))
        yield Finding(
            node, message, Fix((Replace(node, Code(f"{{1}}({spelled})", parts)),), Applicability.UNSAFE), granted
        )

    invalid = INVALID
    valid = VALID


def _repeats(call: ast.Call, facts: Facts) -> ast.expr | None:
    """The tensor that says how often each element is repeated, where ``call`` is not told the size of the result."""
    named = {k.arg: k.value for k in call.keywords}
    if not last_name(call.func).endswith("repeat_interleave") or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    what, values = facts.syntax.qualified(call.func), list(call.args)
    if what is None and isinstance(call.func, ast.Attribute):
        values.insert(0, call.func.value)
    elif what != "torch.repeat_interleave":
        return None
    given = dict(zip(("input", "repeats", "dim"), values, strict=False)) | {k: v for k, v in named.items() if k}
    repeats = given.get("repeats", given.get("input"))
    if given.keys() - {"input", "repeats", "dim"} or repeats is None or facts.value(repeats).is_number:
        return None
    return repeats if len(given) == 1 or facts.ask(LikelyTensors).of(repeats) else None


def _made(e: ast.expr, facts: Facts, depth: int = 4) -> ast.expr:
    """What ``e`` was made by, conversions and names aside."""
    match e:
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if depth and attr in _KEEPING:
            return _made(inner, facts, depth - 1)
        case ast.Name():
            found = [d.value for d in facts.inference.definitions(e) if d.how == "assign" and not d.path]
            if depth and len(found) == 1 == len(facts.inference.definitions(e)) and found[0] is not None:
                return _made(found[0], facts, depth - 1)
    return e


def _list_of(repeats: ast.expr, facts: Facts) -> ast.Name | None:
    """The list that the repeats were made of."""
    match _made(repeats, facts):
        case ast.Call(func=func, args=[ast.Name() as counts, *_]) if facts.syntax.qualified(func) in _FROM_LIST:
            return counts if facts.value(counts).python == "container" else None
    return None


def _beside(call: ast.Call, facts: Facts) -> ast.expr | None:
    """``n`` where the result meets ``torch.arange(n)`` in an operator."""
    parent = facts.syntax.parents[call]
    if isinstance(parent, ast.BinOp):
        match _made(parent.left if parent.right is call else parent.right, facts):
            case ast.Call(func=func, args=[ast.Name() as n]) if facts.syntax.qualified(func) == "torch.arange":
                return n if not facts.presumed.of(n).is_tensor else None
    return None
