"""FC801: layer norm, written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Found, Operators
from patcher.facts.operators.terms import is_float32
from patcher.facts.tables.fusions import presumed, rounding
from patcher.rule import Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule
from rules.fc801_hand_layer_norm.examples import INVALID, VALID


class HandLayerNorm(Rule):
    """``(x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + eps)``, for which PyTorch has ``F.layer_norm``.

    What it does:
        Writes ``F.layer_norm(x, (x.shape[-1],), weight, bias, eps)``, and takes out what led up to it: the variance as
        a mean of squares, as ``var(unbiased=False)`` or as the mean of squares less the square of the mean, divided by
        its root or multiplied with ``rsqrt``. The epsilon is always passed. Weight and bias come in where they are
        parameters of one dimension; other factors and addends stay as they are.

    Why it breaks compilation:
        It does not: inductor makes one kernel of either. Eagerly each step is a kernel with a rounding of its own, so
        that in bfloat16 eager and compiled results are further apart than those of ``F.layer_norm``, and the steps take
        several times as long. That is why the rule is off unless it is asked for.

    Fix safety:
        Unsafe: the last bits differ, of outputs and of gradients, in each dtype; the finding says by how much. The mean
        of squares less the square of the mean loses digits that ``F.layer_norm`` keeps. Weights are given as they are,
        and have to have the dtype of the input; those of an input in float32 are converted with it. Weights that are
        not as wide as the input were broadcast, and are an error. Reported, not fixed, where another dimension
        than the last is reduced (``F.layer_norm`` of channels needs them last), and where a part of it is used
        elsewhere or changes in between. A standard deviation with an epsilon outside of the root, and a variance that
        is corrected (``x.var(-1)``), are other functions, and no findings.

    References:
        Ba, Kiros and Hinton, "Layer normalization" (2016); ``torch.nn.functional.layer_norm``.
    """

    code = "FC801"
    name = "hand-layer-norm"
    switch = "layer-norm"
    triggers = (b"mean", b"var")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: eager time, and other last bits than compiled code has

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a layer norm."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "layer_norm")
        if found is None:
            return
        message = f"`F.layer_norm` of `{found.said('x')}`, written out by hand"
        if found.refused:
            yield Finding(node, message, assumption=found.refused)
            return
        removed = tuple(ReplaceStatements(run, ()) for run in found.removed)
        fix = Fix((Replace(node, _call(found, facts)), *removed), Applicability.UNSAFE)
        yield Finding(node, message, fix, _presumed(found))

    invalid = INVALID
    valid = VALID


def _call(found: Found, facts: Facts) -> Code:
    """``F.layer_norm(x, (x.shape[-1],), weight, bias, eps)``, ``eps`` by name where it stands alone."""
    assert found.sized is not None
    parts: list[ast.expr | Code] = [found.operands["x"], found.sized]
    words = ["{0}", "({1}.shape[-1],)"]
    for name in ("weight", "bias") if found.operands.keys() & {"weight", "bias"} else ():
        if name not in found.operands:
            words.append("None")
            continue
        row = found.operands[name]
        narrow = found.in_float32 and not is_float32(found.terms[name])
        parts.append(Code("{0}.float()", (row,)) if narrow else row)
        words.append(f"{{{len(parts) - 1}}}")
    eps = repr(found.options["eps"]) if "eps" in found.options else f"{{{len(parts)}}}"
    parts += [found.operands["eps"]] if "eps" in found.operands else []
    words.append(eps if len(words) == 4 else f"eps={eps}")
    return Code(f"{facts.writing.functional('layer_norm', found.node)}({', '.join(words)})", tuple(parts))


def _presumed(found: Found) -> str:
    if found.in_float32:
        return rounding("layer_norm")
    rows = " and ".join(f"`{found.said(name)}`" for name in ("weight", "bias") if name in found.operands)
    return f"{rows}: of the dtype of `{found.said('x')}`; {presumed('layer_norm')}" if rows else presumed("layer_norm")
