"""--prove keeps an operator of PyTorch's only where it earns something: on a bench that answers from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patcher.analysis import Analysis
from patcher.diagnose.bench import State
from patcher.diagnose.better import eager_difference
from patcher.diagnose.diagnosis import Tried
from patcher.diagnose.places import Places
from patcher.diagnose.prove import Ending, Search
from patcher.harness.compare import Judgement, Verdict
from patcher.harness.measured import (
    CaseResult,
    Comparison,
    Counts,
    Distance,
    Figures,
    Measurement,
    Warm,
)
from patcher.harness.plan import Options
from patcher.results import FileResult
from patcher.settings import Settings
from rules import load_rules
from tests.test_prove import results

SOURCE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Alpha(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Beta(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
"""
NAMES = ("Alpha", "Beta")
FUSIONS = tuple(rule.code for rule in load_rules() if rule.switch)
ASKED = Settings(unsafe=True, switches=frozenset({"silu"}))


@dataclass
class World:
    """By what is fixed: milliseconds of eager and of compiled code, and how far compiled results are from eager's."""

    folder: Path
    eager: dict[frozenset[str], float] = field(default_factory=dict)
    compiled: dict[frozenset[str], float] = field(default_factory=dict)
    apart: dict[frozenset[str], float] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        file = self.folder / "net.py"
        file.write_text(SOURCE)
        self.analysis = Analysis([str(file)], load_rules(), ASKED)
        self.places = Places([str(file)], str(self.folder), [])
        self.measured = 0

    def measure(
        self,
        files: Sequence[FileResult],
        options: Options | None = None,
        fresh: bool = False,
        settings: Sequence[object] = (),
    ) -> State:
        self.measured += 1
        texts = [file.after.decode() for file in files if file.changed]
        parts = {
            name: "".join(t.partition(f"class {name}(")[2].partition("class ")[0] for t in texts) for name in NAMES
        }
        fixed = frozenset(name for name, part in parts.items() if "F.silu" in part)
        variants, comparisons = [], []
        for tree, now in (("original", frozenset[str]()), ("patched", fixed)):
            times = {"eager": self.eager.get(now, 10.0), "compiled": self.compiled.get(now, 5.0)}
            for kind, ms in times.items():
                figures = Figures(counts=Counts(), launches=1, operators=4, warm=Warm(ms, 0.99 * ms, 1.01 * ms, ms, 9))
                mode = "default" if kind == "compiled" else None
                variants.append(Measurement(tree, kind, mode, "ok", figures=figures))  # type: ignore[arg-type]
            apart = self.apart.get(now, 1e-3)
            own = None if tree == "original" else apart
            outputs = Distance(False, mae=apart if tree == "original" else 1e-3)
            comparisons.append(Comparison(tree, "compiled", "default", outputs, own_eager=own))  # type: ignore[arg-type]
        case = CaseResult("case", 1e-3, False, None, None, tuple(variants), tuple(comparisons))
        status = "different" if fixed & self.wrong else "equivalent"
        verdict = Verdict("case", "default", status, ("too far apart",))  # type: ignore[arg-type]
        return State(tuple(files), results(case), Judgement((verdict,)), (), ())

    def search(self, settings: Settings) -> Ending:
        costs = {rule.code: rule.costs for rule in load_rules()}
        search = Search(self.analysis, settings, self, costs, Options(), torch="2.13.0", fusions=FUSIONS)  # type: ignore[arg-type]
        return search.run(())


ALPHA, BETA, BOTH = frozenset({"Alpha"}), frozenset({"Beta"}), frozenset(NAMES)


def by_class(ending: Ending) -> dict[str, Tried]:
    return {label.split()[-1].partition(".")[0]: tried for tried in ending.tried for label in tried.fixes}


def test_what_makes_eager_code_quicker_is_kept_and_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, eager={ALPHA: 6.0, BOTH: 6.0})
    found = by_class(world.search(ASKED))
    assert {name: tried.outcome for name, tried in found.items()} == {"Alpha": "kept", "Beta": "no-op"}
    assert "case (eager) 10 -> 6 ms" in found["Alpha"].reason
    assert "neither eager time beyond noise" in found["Beta"].reason


def test_what_brings_compiled_results_closer_is_kept_and_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, apart={BETA: 1e-8, BOTH: 1e-8})
    found = by_class(world.search(ASKED))
    assert {name: tried.outcome for name, tried in found.items()} == {"Alpha": "no-op", "Beta": "kept"}
    assert "case (default) from eager to compiled 1.0e-03 -> 1.0e-08" in found["Beta"].reason


def test_what_makes_compiled_code_slower_is_not_kept(tmp_path: Path) -> None:
    world = World(tmp_path, eager={ALPHA: 6.0, BOTH: 6.0}, compiled={ALPHA: 9.0, BOTH: 9.0})
    found = by_class(world.search(ASKED))
    assert found["Alpha"].outcome == "not better"
    assert "5 -> 9 ms" in found["Alpha"].reason
    assert not any("F.silu(" in file.after.decode() for file in world.search(ASKED).files if file.changed)


def test_what_changes_results_is_left_out(tmp_path: Path) -> None:
    world = World(tmp_path, eager={ALPHA: 6.0, BETA: 6.0, BOTH: 3.0}, wrong=frozenset({"Beta"}))
    found = by_class(world.search(ASKED))
    assert {name: tried.outcome for name, tried in found.items()} == {"Alpha": "kept", "Beta": "different"}


@pytest.mark.parametrize("settings", [Settings(unsafe=True), Settings(switches=frozenset({"silu"}))])
def test_nothing_is_measured_for_what_is_not_asked_for(tmp_path: Path, settings: Settings) -> None:
    world = World(tmp_path, eager={BOTH: 1.0})
    assert world.search(settings).files == () or not any(f.changed for f in world.search(settings).files)
    assert world.measured == 0


def test_numbers_that_drift_apart_count_against_it(tmp_path: Path) -> None:
    world = World(tmp_path, apart={ALPHA: 1e-1})
    state = world.measure(world.analysis.again(Settings(unsafe=True, switches=frozenset({"silu"}))))
    assert eager_difference((state, "original"), (state, "patched")).worse == ()
    world.apart[BOTH] = 1e-1
    state = world.measure(world.analysis.again(Settings(unsafe=True, switches=frozenset({"silu"}))))
    found = eager_difference((state, "original"), (state, "patched"))
    assert found.worse == ("case (default) from eager to compiled 1.0e-03 -> 1.0e-01",)
    assert not found.gain
