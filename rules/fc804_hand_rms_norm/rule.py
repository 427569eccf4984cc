"""FC804: RMS norm, written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Found, Operators
from patcher.facts.operators.terms import Op, is_float32, subterms
from patcher.facts.tables.fusions import presumed, rounding
from patcher.rule import Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule
from rules.fc804_hand_rms_norm.examples import INVALID, VALID


class HandRmsNorm(Rule):
    """``x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)``, for which PyTorch has ``F.rms_norm``.

    What it does:
        Writes ``F.rms_norm(x, (x.shape[-1],), weight, eps)``, and takes out what led up to it: any order of factors,
        ``pow(2)``, ``x * x`` or ``square``, ``rsqrt``, ``1 / sqrt`` or ``x / sqrt``, ``mean``, as
        functions or methods. The epsilon is always passed: without one, ``F.rms_norm`` takes another. The weights come
        in where they are a parameter of one dimension (also plus one); other factors stay as they are.

    Why it breaks compilation:
        It does not: inductor makes one kernel of either. Eagerly each step is a kernel with a rounding of its own, and
        a weight that is multiplied after the cast back makes one rounding more than compiled code makes. That is why
        the rule is off unless it is asked for.

    Fix safety:
        Unsafe. Conversions stay where they are, and weights of an input in float32 are converted with it, so that
        dtypes are the same whatever the input has; on a CPU that is the same to the last bit, outputs and gradients, if
        it is written with ``pow(2)`` and ``rsqrt``; a GPU has a kernel of its own, which nobody has compared. Where the
        weight is multiplied with what was cast back, input and weight are given as they are: other last bits (the
        finding says how far off), and another dtype where the two dtypes differ, as under autocast; a weight that is
        made in a dtype of its own is not fixed. Weights that are not as wide as the input were broadcast, and are an
        error. An input in float64 that was multiplied with statistics in float32 gives float32. Reported, and
        left alone, where another dimension is reduced, and where a part of it is used elsewhere or changes in between.
        An epsilon outside of the root is another function, and no finding.

    References:
        Zhang and Sennrich, "Root mean square layer normalization" (2019); ``torch.nn.functional.rms_norm``.
    """

    code = "FC804"
    name = "hand-rms-norm"
    switch = "rms-norm"
    triggers = (b"sqrt", b"-0.5", b"0.5")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: other last bits than compiled code has

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is an RMS norm."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "rms_norm")
        if found is None or facts.settings.target_torch < _SINCE:
            return
        message = f"`F.rms_norm` of `{found.said('x')}`, written out by hand"
        refused = found.refused or _why_not(found)
        if refused:
            yield Finding(node, message, assumption=refused)
            return
        removed = tuple(ReplaceStatements(run, ()) for run in found.removed)
        fix = Fix((Replace(node, _call(found, facts)), *removed), Applicability.UNSAFE)
        yield Finding(node, message, fix, _presumed(found))

    invalid = INVALID
    valid = VALID


#: The first version of PyTorch that has ``F.rms_norm``.
_SINCE = (2, 4)


def _why_not(found: Found) -> str:
    weight = found.terms.get("weight")
    converted = weight is not None and any(isinstance(t, Op) and t.name == "cast" for t in subterms(weight))
    return f"`{found.said('weight')}` is converted, and the input is not" if converted and not found.in_float32 else ""


def _call(found: Found, facts: Facts) -> Code:
    """``F.rms_norm(x, (x.shape[-1],), weight, eps)``."""
    assert found.sized is not None
    spelled = facts.writing.functional("rms_norm", found.node)
    parts: list[ast.expr | Code] = [found.operands["x"], found.sized]
    text = f"{spelled}({{0}}, ({{1}}.shape[-1],)"
    if "weight" in found.operands:
        weight = found.operands["weight"]
        narrow = found.in_float32 and not is_float32(found.terms["weight"])
        parts.append(Code("{0}.float()", (weight,)) if narrow else weight)
        text += ", {2}"
    if "eps" in found.operands:
        parts.append(found.operands["eps"])
        eps = f"{{{len(parts) - 1}}}"
    else:
        eps = repr(found.options["eps"])
    return Code(f"{text}, {eps})" if "weight" in found.operands else f"{text}, eps={eps})", tuple(parts))


def _presumed(found: Found) -> str:
    form = f"rms_norm-{found.form}{'-float32' if found.in_float32 and found.form != 'outside' else ''}"
    if found.in_float32:
        return rounding(form)
    same = f"`{found.said('weight')}` has the dtype of `{found.said('x')}`; " if "weight" in found.operands else ""
    return same + presumed(form)
