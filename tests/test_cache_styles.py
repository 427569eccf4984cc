"""Caches in many styles, one a file of ``tests/caches``: what a default run makes of each of them.

A file has ``build()``, which makes a model, and ``rounds()``, a list of functions of the model: each is a prefill and
twenty decode steps, the batch has another size in each. It says of itself what is to come of it: ``PROMISE`` (figures
of the patched source; ``launches`` are a step's, the rest is of all rounds), ``REFUSED`` (part of the reason), or
``UNSEEN`` (why FC302 says nothing). ``harder()``, in some, are calls that overflow, begin again, take turns, change the
batch, branch from one past or go backward: what raises has to raise still.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import Counts, Raised, Ran, compiled, eager, equal, imported

FOLDER = Path(__file__).resolve().parent / "caches"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
STEPS = 21  # of a round, the prefill among them
TOLERANCE = 1e-5


@functools.cache
def source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


@functools.cache
def patched(name: str) -> PatchResult:
    return patch(source(name), f"{name}.py", tuple(load_rules()), Settings())


def said(name: str, constant: str) -> Any:
    """What the file says of itself, None when it says nothing."""
    with imported(source(name)) as module:
        return getattr(module, constant, None)


PROMISED = [name for name in NAMES if said(name, "PROMISE")]
REFUSED = [name for name in NAMES if said(name, "REFUSED")]
UNSEEN = [name for name in NAMES if said(name, "UNSEEN")]


HARDER = [name for name in NAMES if said(name, "harder") is not None]


def executed(text: str, calls: str = "rounds") -> str:
    return f"{text}\n\nmake, calls, grad = build, {calls}, {calls == 'harder'}\n"


@functools.cache
def eagerly(text: str) -> Ran:
    return eager(executed(text))


@functools.cache
def hard(text: str) -> Ran:
    return eager(executed(text, "harder"))


def when_compiled(text: str) -> Counts:
    return compiled(executed(text))


def strategies(result: PatchResult) -> set[str]:
    """What the cache was fixed by: state that becomes Python integers is what ``single-graph`` needs."""
    return {"single-graph" if f.code == "FC302" else f.strategy for f in result.fixed}


def outputs(ran: Ran) -> list[Any]:
    return [output for output, _ in ran.outputs]


def test_each_file_says_what_is_to_come_of_it() -> None:
    assert len(NAMES) >= 10
    assert sorted(PROMISED + REFUSED + UNSEEN) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_patched_cache_runs_the_same(name: str) -> None:
    result = patched(name)
    assert result.bugs == ()
    before, after = eagerly(source(name)), eagerly(result.text)
    assert not any(isinstance(output, Raised) for output in outputs(before))
    assert equal(list(before.outputs), list(after.outputs)) is None
    assert equal(list(before.aliases), list(after.aliases)) is None


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("name", HARDER)
def test_patched_cache_does_the_same_when_it_gets_hard(name: str, unsafe: bool) -> None:
    before = hard(source(name))
    text = patch(source(name), f"{name}.py", tuple(load_rules()), Settings(unsafe=unsafe)).text
    after = hard(text)
    assert equal(list(before.outputs), list(after.outputs)) is None
    assert equal(list(before.aliases), list(after.aliases)) is None
    assert equal(outputs(before), list(compiled(executed(text, "harder")).outputs), TOLERANCE) is None


@pytest.mark.parametrize("name", NAMES)
def test_patched_cache_is_stable(name: str) -> None:
    text = patched(name).text
    assert patch(text, f"{name}.py", tuple(load_rules()), Settings()).text == text


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_patched_cache_keeps_the_promise(name: str) -> None:
    promise, result = said(name, "PROMISE"), patched(name)
    assert promise["strategy"] in strategies(result)
    after = when_compiled(result.text)
    assert (after.breaks, after.limit_hits, after.dropped_frames) == (promise["breaks"], 0, 0), str(after)
    assert after.launches == promise["launches"] * STEPS, str(after)
    assert after.recompiles <= promise["recompiles_at_most"], str(after)
    assert equal(outputs(eagerly(result.text)), list(after.outputs), TOLERANCE) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED + UNSEEN)
def test_refused_cache_compiles_no_worse(name: str) -> None:
    result = patched(name)
    before, after = when_compiled(source(name)), when_compiled(result.text)
    assert after.cost <= before.cost, f"before: {before}\nafter: {after}"
    assert equal(outputs(eagerly(result.text)), list(after.outputs), TOLERANCE) is None


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_says_why(name: str) -> None:
    result = patched(name)
    reasons = [finding.assumption for finding in result.found if finding.code == "FC302"]
    assert any(said(name, "REFUSED") in reason for reason in reasons), reasons
    assert not [finding for finding in result.fixed if finding.code == "FC302"]


@pytest.mark.parametrize("name", UNSEEN)
def test_unseen_cache_is_left_alone(name: str) -> None:
    assert not [finding for finding in patched(name).found if finding.code == "FC302"]
