"""Modules written to deceive one rule: unchanged, or the same when they run, eagerly and compiled.

They are in ``breadth_attacks``: each file there has ``ATTACKS``, from what is attacked to the rule's code, the source,
and how it is run (``make`` and ``calls``, as an example of a rule has them).
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE, Raised, compiled, eager, equal

RULES = {rule.code: rule for rule in load_rules()}
AREAS = sorted(p.stem for p in (Path(__file__).parent / "breadth_attacks").glob("[a-z]*.py"))
ATTACKS: dict[str, tuple[str, str, str]] = {
    f"{area}-{name}": attack
    for area in AREAS
    for name, attack in importlib.import_module(f"tests.breadth_attacks.{area}").ATTACKS.items()
}


def eagerly(text: str, run: str) -> list[object]:
    ran = eager(f"{text}\n\n{run}\n")
    return [list(ran.outputs), list(ran.aliases)]


def when_compiled(text: str, run: str) -> list[object]:
    return list(compiled(f"{text}\n\n{run}\n").outputs)


@pytest.mark.parametrize("name", ATTACKS)
def test_unchanged_or_the_same(name: str) -> None:
    code, source, run = ATTACKS[name]
    text = f"{PREAMBLE}\n\n{source.strip()}\n"
    result = patch(text, "example.py", (RULES[code],), Settings(unsafe=True))
    assert result.bugs == ()
    before = eagerly(text, run)
    outputs = [out for out, _ in before[0]]  # type: ignore[attr-defined]
    assert not all(isinstance(out, Raised) for out in outputs), outputs
    if result.text == text:
        return
    assert patch(result.text, "example.py", (RULES[code],), Settings(unsafe=True)).text == result.text, "stable"
    assert equal(before, eagerly(result.text, run)) is None, result.text
    now = when_compiled(result.text, run)
    difference = equal(outputs, now, 1e-5, "compiled")
    # what the original does not do when it is compiled is not asked for
    assert difference is None or equal(outputs, when_compiled(text, run), 1e-5) is not None, (
        f"{difference}\n{result.text}"
    )
