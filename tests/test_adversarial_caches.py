"""Caches written to deceive what turns their integer tensors into Python ints: unchanged, or the same when they run.

The caches are in ``caches_attacks``, by what they attack.
"""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules
from tests.caches_attacks.breaks import ADDRESSES, BREAKS, EFFECTS
from tests.caches_attacks.elsewhere import ELSEWHERE, LEAVING, SEEN
from tests.caches_attacks.forms import PLAIN, TYPES, Cases, alter, probe, settled
from tests.caches_attacks.good import GOOD
from tests.caches_attacks.limits import LIMITS
from tests.caches_attacks.lines import LINES, one_line
from tests.caches_attacks.meaning import DIFFERENT, LATE, WRITTEN
from tests.caches_attacks.relatives import INHERITED, KEPT_CASES
from tests.caches_attacks.views import MOMENTS, VIEWS
from tests.dynamo import PREAMBLE, Counts, Raised, compiled, eager, equal

RULES = tuple(load_rules())
GROUPS = (VIEWS, MOMENTS, LEAVING, SEEN, INHERITED, KEPT_CASES, DIFFERENT, WRITTEN, LATE, BREAKS, EFFECTS, ADDRESSES)
CASES: Cases = {name: case for group in GROUPS for name, case in group.items()}
#: Compiling takes a hundred times as long as the rest: some of each group, and what attacks compiled code.
COMPILED = {name for group in GROUPS for name in list(group)[::8]}
COMPILED |= {name for name in CASES if name.endswith(", a row") or "compiled" in name or "that a module" in name}
#: Of an older torch some marks and breaks are written in another way.
OLDER = {*BREAKS, *ADDRESSES}


def patched(text: str, settings: Settings, *others: str) -> PatchResult:
    files = [text, *others]
    project = Project([summarise(ast.parse(file), f"file{i}.py") for i, file in enumerate(files)])
    result = patch(text, "file0.py", RULES, settings, project)
    assert result.bugs == ()
    if result.text != text:
        again = patch(result.text, "file0.py", RULES, settings)
        assert not again.bugs
        if not others:
            assert again.text == result.text, "stable"
    return result


def outputs(text: str, run: str) -> list[object]:
    """Outputs, tensors that share memory, and gradients, of eager calls."""
    ran = eager(f"{text}\n\n{run}\n")
    assert not any(isinstance(out, Raised) for out, _ in ran.outputs), ran.outputs
    return [list(ran.outputs), list(ran.aliases)]


def compare(text: str, after: str, run: str, *, compiling: bool = True) -> Counts | None:
    """The two sources do the same, eagerly and compiled; what the first does not do when compiled is not asked for."""
    before = outputs(text, run)
    try:
        now = outputs(after, run)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{after}") from None
    difference = equal(before, now)
    assert difference is None, f"{difference}\n{after}"
    if not compiling:
        return None
    eagerly = [out for out, _ in before[0]]  # type: ignore[attr-defined]
    got = compiled(f"{after}\n\n{run}\n")
    difference = equal(eagerly, list(got.outputs), 1e-5, "compiled")
    if difference is not None or got.cost[0]:
        first = compiled(f"{text}\n\n{run}\n")
        assert difference is None or equal(eagerly, list(first.outputs), 1e-5) is not None, f"{difference}\n{after}"
        assert got.cost[0] <= first.cost[0], f"{first} -> {got}\n{after}"
    return got


def variants(cases: Cases) -> list[object]:
    """Each case as it is written, and, where that makes a difference, with types."""
    return [
        pytest.param(name, typed, id=f"{name}{' (typed)' if typed else ''}")
        for name, (source, _) in cases.items()
        for typed in (False, True)
        if not typed or any(old in source for old in TYPES)
    ]


@pytest.mark.parametrize(("name", "typed"), variants(CASES))
def test_unchanged_or_equal(name: str, typed: bool) -> None:
    source, run = CASES[name]
    text = settled(source, typed)
    torches = [Settings(), *([Settings(target_torch=(2, 6))] if name in OLDER and not typed else [])]
    results = {patched(text, settings).text for settings in torches} - {text}
    for after in results:
        compare(text, after, run, compiling=name in COMPILED and not typed)
    if not results:
        outputs(text, run)


@pytest.mark.parametrize("name", CASES)
def test_unsafe_fixes_say_what_they_assume(name: str) -> None:
    result = patched(settled(CASES[name][0], typed=False), Settings(unsafe=True))
    assert all(r.assumption for r in (*result.found, *result.fixed) if r.applicability != "safe")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_file_is_heard(name: str) -> None:
    source, other, run = ELSEWHERE[name]
    text = settled(source, False)
    result = patched(text, Settings(), f"{PREAMBLE}\nfrom file0 import Memory\n{other}")
    outputs(text + other, run)
    if result.text != text:
        compare(text + other, result.text + other, run)


@pytest.mark.parametrize(("name", "typed"), variants(GOOD))
def test_converted(name: str, typed: bool) -> None:
    source, run = GOOD[name]
    text = settled(source, typed)
    result = patched(text, Settings())
    assert "FC302" in {r.code for r in result.fixed}, [(r.code, r.message, r.assumption) for r in result.found]
    counts = compare(text, result.text, run, compiling=not typed)
    if counts is not None:
        assert (counts.breaks, counts.limit_hits, counts.dropped_frames) == (0, 0, 0), counts


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("name", LIMITS)
def test_what_is_not_promised(name: str, typed: bool) -> None:
    source, run, expected = LIMITS[name]
    text = settled(source, typed)
    after = patched(text, Settings()).text
    difference = equal(outputs(text, run), outputs(after, run))
    assert difference is not None
    assert expected in difference


@pytest.mark.parametrize("layer", ["[0]", "torch.tensor([0])", "None", "..."])
def test_an_index_that_is_no_integer_raises(layer: str) -> None:
    """Each of these picks the one element of a tensor; of a list, nothing, and never another element."""
    text = settled(PLAIN, typed=False)
    start = "    memory, out = new(), []\n"
    run = alter(probe("pass"), (start, f"    return tried(Memory(1, 2, 9, 4).length, {layer})\n"))
    before, after = outputs(text, run), outputs(patched(text, Settings()).text, run)
    assert equal(before, after) is None or "raised" in str(after)


@pytest.mark.parametrize(
    ("kind", "line"),
    [pytest.param(kind, line, id=f"{kind}: {line}") for kind in LINES for line in LINES[kind][1].splitlines()],
)
def test_one_line_is_unchanged_or_equal(kind: str, line: str) -> None:
    text = one_line(kind, line)
    run = probe("out.append(memory.told(0, rows(3)))", "out.append(memory._seen)", "memory.append(1, rows(1))")
    before = outputs(text, run)
    after = patched(text, Settings()).text
    difference = after != text and equal(before, outputs(after, run))
    assert not difference, f"{difference}\n{after}"
