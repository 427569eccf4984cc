"""Whether a rule does what its examples say. They are rewritten here, not run: that takes a PyTorch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.rule import Example, NearMiss, Rule
from patcher.settings import Settings

#: Below these lines the sources of examples stand.
PREAMBLE = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_OLDEST_TORCH = (2, 6)  # there no rule rests because its pattern no longer breaks
_HEADINGS = ("What it does", "Why it breaks compilation", "Fix safety")
_PATH = "example.py"
_ABOVE = PREAMBLE.count("\n")


def examined(rule: Rule, others: Sequence[Rule] = ()) -> tuple[str, ...]:
    """What is wrong with ``rule``, a line each; () when it does what it says.

    Each example is found and becomes what it says, to the letter; what an unsafe fix takes for granted is said; each
    near miss stays. ``others``: rules that must leave what it has written alone, too.
    """
    return tuple(_complaints(rule, others))


def _complaints(rule: Rule, others: Sequence[Rule]) -> Iterator[str]:
    doc = inspect.getdoc(type(rule)) or ""
    for heading in _HEADINGS:
        if not re.search(rf"^{heading}:$", doc, re.MULTILINE):
            yield f"its docstring has no heading {heading!r}"
    if vars(rule):
        yield "it holds state: everything that a rule knows belongs to its class"
    for example in rule.invalid:
        for why in _of_example(rule, example, others):
            yield f"example {example.title!r}: {why}"
    for miss in rule.valid:
        if why := _of_near_miss(rule, miss):
            yield f"near miss {miss.title!r}: {why}"


def _of_example(rule: Rule, example: Example, others: Sequence[Rule]) -> Iterator[str]:
    settings = _settings(example)
    before = PREAMBLE + example.before
    after = before if example.after is None else PREAMBLE + example.after
    result = _patched(before, [rule], settings)
    if isinstance(result, str):
        yield result
        return
    if not result.found:
        yield "nothing is found" + _hint(rule, before)
    elif result.text != after:
        yield f"becomes something else than it says, from {_first_difference(after, result.text)}"
    elif example.after is not None:
        again = _patched(after, [rule, *others], settings)
        if isinstance(again, str):
            yield again
        elif again.text != after:
            yield "what it becomes is rewritten once more"
    if (example.unsafe or example.after is None) and not isinstance(
        by_default := _patched(before, [rule], replace(settings, unsafe=False)), str
    ):
        if by_default.text != before:
            yield "it is rewritten without --unsafe"
        elif any(not found.assumption for found in by_default.remaining):
            yield "a finding without a safe fix says in `assumption` what it takes for granted, or why there is none"


def _of_near_miss(rule: Rule, miss: NearMiss) -> str:
    source = PREAMBLE + miss.source
    result = _patched(source, [rule], replace(_settings(miss), unsafe=True))
    if isinstance(result, str):
        return result
    if miss.instead:
        return "" if miss.instead in result.text else f"it is not rewritten with `{miss.instead}`"
    if result.text != source:
        return "it is rewritten"
    return "it is reported" if result.found and not miss.reported else ""


def _settings(case: Example | NearMiss) -> Settings:
    return Settings(
        unsafe=getattr(case, "unsafe", False),
        strategies=getattr(case, "strategies", {}),
        target_torch=_OLDEST_TORCH,
        evidence=tuple(replace(varied, path=_PATH) for varied in case.evidence),
        extents=tuple(extent._replace(path=_PATH) for extent in case.extents),
        torch_settings=case.torch_settings,
    )


def _patched(text: str, rules: Sequence[Rule], settings: Settings) -> PatchResult | str:
    try:
        result = patch(text, _PATH, rules, settings)
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"is no Python source: {error}"
    if result.bugs:
        bug = result.bugs[0]
        return f"{bug.code} fails in line {bug.line - _ABOVE}: {bug.message}"
    return result


def _hint(rule: Rule, text: str) -> str:
    if not any(trigger in text.encode("utf-8", "surrogatepass") for trigger in rule.triggers):
        return ": none of its triggers is in the text"
    return ""


def _first_difference(expected: str, got: str) -> str:
    """The first line that is another one, without the preamble's."""
    said, made = expected.split("\n"), got.split("\n")
    pairs = enumerate(zip(said, made, strict=False))
    at = next((n for n, (one, other) in pairs if one != other), min(len(said), len(made)))
    line = made[at] if at < len(made) else "(its end)"
    return f"line {at + 1 - _ABOVE}: {line.strip()!r}"
