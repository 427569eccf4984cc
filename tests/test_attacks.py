"""Whole modules written to deceive the safe fixes: the patched project does what the original does.

They are in ``attacks``, see `tests.attacks.running`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.running import RULES, Attack, attacks, outcome, patched

ATTACKS = {f"{attack.rule}-{attack.name}": attack for attack in attacks(Path(__file__).parent / "attacks")}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_patched_project_does_the_same(attack: Attack) -> None:
    result = outcome(attack)
    assert result.returned, "an attack that never returns shows nothing"
    assert result.holes == (), result.diff


@pytest.mark.parametrize("code", sorted({attack.rule for attack in ATTACKS.values()}))
def test_not_all_of_them_are_left_alone(code: str) -> None:
    fixed = (patched(attack, RULES)[1] for attack in ATTACKS.values() if attack.rule == code)
    assert any(code in codes for codes in fixed), "attacks on code that no fix touches show nothing"
