"""FC805: attention, written out by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.operators.found import Found, Operators
from patcher.facts.tables.fusions import MEASURED, presumed
from patcher.rule import Applicability, Code, Finding, Fix, Replace, ReplaceStatements, Rule
from rules.fc805_hand_attention.examples import INVALID, VALID


class HandAttention(Rule):
    """``torch.softmax(q @ k.transpose(-2, -1) * scale + mask, dim=-1) @ v``, which PyTorch has as one function.

    What it does:
        Writes ``F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=..., scale=scale)``, and takes out
        what led up to it. Scale and mask are always passed, and ``is_causal`` never: what a mask holds is not known. A
        mask is what is added to the scores (also under ``if mask is not None:``), or what they are filled by, with
        minus infinity.

    Why it breaks compilation:
        It does not: inductor recognises most of it. Eagerly the scores are a tensor of their own, of a size that grows
        with the square of the length, and each step rounds; that is why eager and compiled results are further apart
        than they need be. The rule is off unless it is asked for.

    Fix safety:
        Unsafe: other last bits (the finding says how many); a row that is masked wholly has NaN by hand and zeros here;
        dropout draws other numbers. In bfloat16 on a CPU PyTorch's own is several times slower. A mask that is added
        has to be floating, of the dtype of the query or float32, and no larger than the scores. Reported, and
        left alone: where the weights are returned, or scores or weights are used for something else, where the mask
        fills with a finite number (rows that see nothing then see everything), where the scale is made of several
        numbers, and where query, key and value are not converted alike.

    References:
        Vaswani et al., "Attention is all you need" (2017); ``torch.nn.functional.scaled_dot_product_attention``.
    """

    code = "FC805"
    name = "hand-attention"
    switch = "attention"
    triggers = (b"softmax", b"Softmax")
    listens_to = (ast.BinOp, ast.Call)
    costs = ()  # no break: eager time and memory

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is attention."""
        assert isinstance(node, (ast.BinOp, ast.Call))
        found = facts.ask(Operators).at(node, "attention")
        if found is None:
            return
        message = f"attention of `{found.said('query')}`, written out by hand"
        if found.refused or facts.settings.target_torch < _SINCE:
            yield Finding(node, message, assumption=found.refused or "that PyTorch has no `scale` for it")
            return
        removed = tuple(ReplaceStatements(run, ()) for run in found.removed)
        fix = Fix((Replace(node, _call(found, facts)), *removed), Applicability.UNSAFE)
        yield Finding(node, message, fix, _presumed(found))

    invalid = INVALID
    valid = VALID


#: The first version of PyTorch whose function takes a scale.
_SINCE = (2, 1)


def _call(found: Found, facts: Facts) -> Code:
    held = found.operands
    words: list[tuple[str, Code]] = []
    if "mask" in held:
        filled = found.options["mask"] == "filled"
        words.append(("attn_mask", Code("~{0}" if filled else "{0}", (held["mask"],))))
    if "dropout" in found.options:
        words.append(("dropout_p", _dropout(found)))
    words.append(("scale", _scale(found)))
    spelled = facts.writing.functional("scaled_dot_product_attention", found.node)
    named = ", ".join(f"{name}={{{i}}}" for i, (name, _) in enumerate(words, 3))
    return Code(
        f"{spelled}({{0}}, {{1}}, {{2}}, {named})",
        (held["query"], held["key"], held["value"], *(code for _, code in words)),
    )


def _dropout(found: Found) -> Code:
    """How much is dropped: what a module or ``F.dropout`` says, in training or whenever that says so."""
    held = found.operands
    if "dropout" in held:
        return Code("{0}.p if {0}.training else 0.0", (held["dropout"],))
    share = Code("{0}", (held["p"],)) if "p" in held else Code("0.5")
    return Code("{0} if {1} else 0.0", (share, held["training"])) if "training" in held else share


def _scale(found: Found) -> Code:
    if "scale" not in found.operands:
        return Code(repr(found.options["scale"]))
    exponent = found.options["exponent"]
    template = {1.0: "{0}", -1.0: "1 / {0}"}.get(float(str(exponent)), f"{{0}} ** {exponent}")
    return Code(template, (found.operands["scale"],))


def _presumed(found: Found) -> str:
    slower = 1 / float(MEASURED["attention"]["bfloat16"]["forward"])
    said = ["no row is masked wholly, and the mask is floating"] if found.options.get("mask") == "added" else []
    said = ["no row is masked wholly"] if found.options.get("mask") == "filled" else said
    said += ["other numbers may be dropped"] if "dropout" in found.options else []
    said.append(f"not in bfloat16 on a CPU, where it takes {slower:.0f} times as long")
    return "; ".join([*said, presumed("attention")])
