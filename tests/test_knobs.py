"""What torch can be told about compiling: the table is what this torch has, and what the rules say of it is run."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.config
from torch import nn

from docs.tables import knobs
from patcher.edit.engine import patch
from patcher.facts import Facts
from patcher.facts.tables.knobs import KNOBS, MODES, knobs_of, meant
from patcher.settings import Settings
from rules import load_rules

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
TABLE = Path(inspect.getfile(Facts)).parent / "tables" / "knobs.json"


def test_the_table_is_what_this_torch_has() -> None:
    known = json.loads(TABLE.read_text(encoding="utf-8"))
    assert VERSION in KNOBS, "python docs/tables/knobs.py --into patcher/facts/tables/knobs.json"
    found = json.loads(json.dumps(knobs.document(knobs.knobs(), torch.__version__, known)))
    for name in ("modes", "arguments", "aliases"):
        assert found[".".join(map(str, VERSION))][name] == known[".".join(map(str, VERSION))][name]
    assert knobs.written(known) == TABLE.read_text(encoding="utf-8")
    assert set(MODES) <= set().union(*(k.modes for k in KNOBS.values()))


def test_options_of_this_torch_are_in_the_table() -> None:
    own = knobs_of((VERSION[0], VERSION[1]))
    assert own.asked
    assert set(torch._inductor.list_options()) <= own.options


def test_a_version_that_nobody_has_asked_lacks_what_looks_misspelt() -> None:
    other = knobs_of((2, 0))
    assert not other.asked
    assert other.lacks("max_autotune", other.modes)
    assert not other.lacks("of_its_own", other.options)
    assert knobs_of((2, 13)).lacks("of_its_own", other.options)


@pytest.mark.parametrize(
    ("given", "right"),
    [("max_autotune", "max-autotune"), ("Reduce-Overhead", "reduce-overhead"), ("speed", None), ("fast", None)],
)
def test_what_is_meant(given: str, right: str | None) -> None:
    assert meant(given, {"default", "max-autotune", "reduce-overhead"}) == right


def test_what_would_be_rejected_all_the_same_is_told_and_not_merged() -> None:
    (rule,) = (rule for rule in load_rules() if rule.code == "FC705")
    text = (
        'import torch\n\n\ndef f(net):\n    return torch.compile(net, mode="max-autotune", options={"of_its_own": 1})\n'
    )
    result = patch(text, "m.py", (rule,), Settings(target_torch=(2, 13)))
    assert result.text == text
    assert len(result.remaining) == 2
    asked = Settings(target_torch=(2, 13), unsafe=True)
    known = patch(text.replace("of_its_own", "epilogue_fusion"), "m.py", (rule,), asked)
    assert "list_mode_options" in known.text


REJECTED: list[dict[str, Any]] = [
    {"dynamic": "auto"},
    {"dynamic": 1},
    {"mode": "max_autotune"},
    {"mode": "default", "options": {}},
    {"mode": "max-autotune", "options": {"max_autotune": True}},
    {"options": {"triton.cudagraph": True}},
    {"backend": "inducter"},
]


@pytest.mark.parametrize("given", REJECTED, ids=str)
def test_what_is_said_to_be_rejected_is(given: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, RuntimeError, TypeError)):
        torch.compile(nn.Linear(2, 2), **given)
    with pytest.raises((AssertionError, RuntimeError, TypeError)):
        nn.Linear(2, 2).compile(**given)
