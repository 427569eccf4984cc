"""The fixtures: small whole models whose patched source runs the same, compiles better, and is what the tool writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import Raised, compiled, eager, equal

FOLDER = Path(__file__).resolve().parent.parent / "fixtures"
each_fixture = pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/before.py")))


def patched(path: Path) -> PatchResult:
    """What a default run makes of the file, taken by itself."""
    return patch(path.read_text(encoding="utf-8"), path.name, tuple(load_rules()), Settings())


def findings(name: str) -> list[tuple[int, str]]:
    """What ``findings.txt`` lists: ``line code`` a line, in the order of the lines."""
    lines = (FOLDER / name / "findings.txt").read_text(encoding="utf-8").splitlines()
    return [(int(line.split()[0]), line.split()[1]) for line in lines]


def executed(name: str, which: str) -> str:
    return f"{(FOLDER / name / which).read_text(encoding='utf-8')}\n\nmake = build\n"


@each_fixture
def test_patched_model_runs_the_same(name: str) -> None:
    before, after = eager(executed(name, "before.py")), eager(executed(name, "after.py"))
    assert not any(isinstance(output, Raised) for output, _ in before.outputs)
    assert equal(list(before.outputs), list(after.outputs)) is None
    assert equal(list(before.aliases), list(after.aliases)) is None
    # A row that many places share sums its gradient in another order.
    assert equal(list(before.gradients), list(after.gradients), 1e-5, "gradient") is None


@pytest.mark.slow
@each_fixture
def test_patched_model_compiles_better(name: str) -> None:
    before, after = compiled(executed(name, "before.py")), compiled(executed(name, "after.py"))
    told = f"before: {before}\nafter: {after}"
    assert after.breaks < before.breaks, told
    assert after.launches < before.launches, told
    assert after.graphs <= before.graphs, told
    assert (after.limit_hits, after.dropped_frames) <= (before.limit_hits, before.dropped_frames), told
    assert after.breaks == after.dropped_frames == after.limit_hits == 0, told
    assert after.recompiles < before.recompiles, told
    assert after.operators >= before.operators, f"something is no longer compiled\n{told}"
    assert equal([output for output, _ in eager(executed(name, "after.py")).outputs], list(after.outputs), 1e-4) is None


@each_fixture
def test_tool_writes_the_patched_model(name: str) -> None:
    result = patched(FOLDER / name / "before.py")
    assert result.bugs == ()
    assert result.text == (FOLDER / name / "after.py").read_text(encoding="utf-8")


@each_fixture
def test_tool_finds_what_there_is(name: str) -> None:
    found = sorted((finding.line, finding.code) for finding in patched(FOLDER / name / "before.py").found)
    assert found == findings(name)


@each_fixture
def test_patched_model_is_left_alone(name: str) -> None:
    path = FOLDER / name / "after.py"
    assert patched(path).text == path.read_text(encoding="utf-8")
