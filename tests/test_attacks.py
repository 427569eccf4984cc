"""Whole modules written to deceive the safe fixes: the patched project does what the original does.

They are in ``attacks``, see `tests.attacks.running`.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

from tests.attacks.running import RULES, Attack, attacks, outcome, patched

ATTACKS = {f"{attack.rule}-{attack.name}": attack for attack in attacks(Path(__file__).parent / "attacks")}
CODES = sorted({attack.rule for attack in ATTACKS.values()})
#: So many of each rule that are rewritten are compiled, besides those that ask for it: all of them take six minutes.
EACH = 1


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_patched_project_does_the_same(attack: Attack) -> None:
    result = outcome(attack)
    assert result.returned, "an attack that never returns shows nothing"
    assert result.holes == (), result.diff


@pytest.mark.parametrize("code", CODES)
def test_the_patched_project_does_the_same_when_it_is_compiled(code: str) -> None:
    of_rule = [attack for attack in ATTACKS.values() if attack.rule == code]
    rewritten = (attack for attack in of_rule if not attack.compiled and code in patched(attack, RULES)[1])
    chosen = [*(attack for attack in of_rule if attack.compiled), *islice(rewritten, EACH)]
    holes = {attack.name: outcome(attack, ("compiled",)).holes for attack in chosen}
    assert not any(holes.values()), holes


@pytest.mark.parametrize("code", CODES)
def test_not_all_of_them_are_left_alone(code: str) -> None:
    fixed = (patched(attack, RULES)[1] for attack in ATTACKS.values() if attack.rule == code)
    assert any(code in codes for codes in fixed), "attacks on code that no fix touches show nothing"


def test_a_module_of_the_same_name_that_is_there_already_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("net")
    monkeypatch.setitem(sys.modules, "net", other)
    assert outcome(ATTACKS["FC601-patched_for_a_while"]).holes == ()
    assert sys.modules["net"] is other
