"""The views of the search in which counts decide: which fixes and settings of PyTorch are kept, and why not others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from patcher.diagnose.asked_settings import GOING_ON
from patcher.diagnose.bench import State
from patcher.diagnose.better import change
from patcher.diagnose.diagnosis import Totals
from patcher.diagnose.events import Seen
from patcher.diagnose.places import Places
from patcher.diagnose.relations import bundles
from patcher.harness.compare import Judgement, Verdict, VerdictStatus
from patcher.harness.measured import (
    CallFigures,
    CaseResult,
    Comparison,
    Counts,
    Distance,
    Environment,
    Figures,
    Measurement,
    Results,
    Site,
    Warm,
)
from patcher.harness.plan import Options
from patcher.patching.analysis import Analysis
from patcher.results import FileResult, PatchResult, Reported
from patcher.search.concluding import verdict
from patcher.search.optimizing import Optimizer
from patcher.settings import Settings, TorchSetting, Unit
from rules import load_rules

CLASS = """

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 4

    def forward(self, x):
        y = x * 2
        if y.sum() > self.limit:
            y = y / 2
        return y
"""
NAMES = ("Alpha", "Beta", "Gamma")


class World:
    """What measuring would show: how many breaks each class that is not fixed costs, and who spoils the results."""

    def __init__(
        self, folder: Path, cost: dict[str, int], wrong: Sequence[str] = (), hidden: Sequence[str] = ()
    ) -> None:
        file = folder / "net.py"
        file.write_text(
            "import torch\nimport torch.nn as nn\n# before the LSTM\n" + "".join(CLASS.format(name=n) for n in cost)
        )
        self.path, self.cost, self.wrong, self.hidden = str(file), cost, wrong, hidden
        self.analysis = Analysis([self.path], load_rules(), Settings())
        self.places = Places([self.path], str(folder), [])
        self.at_length: Sequence[str] = ()  # who spoils results only when measured at length
        self.measured: list[frozenset[str]] = []
        self.reasons: dict[str, str] = {}  # why a class breaks, where it is no branch
        self.removes: dict[str, str] = {}  # the classes that a setting of PyTorch makes whole
        self.spoils: dict[str, VerdictStatus] = {}  # what becomes of the results with a setting
        self.needs: dict[str, str] = {}  # the class that has to be fixed for a setting to do no harm
        self.under: dict[str, str] = {}  # the setting without which fixing a class changes results
        self.set: list[tuple[str, ...]] = []
        self.callers: tuple[str, ...] = ()  # what has called a class that breaks, outermost first
        self.operators: dict[frozenset[str], int] = {}  # of a pass, by what is fixed
        self.gives_up = GOING_ON.name  # the setting with which frames are given up, and operators of a pass with them
        self.given_up, self.lost = 0, 0

    def line(self, name: str) -> int:
        text = Path(self.path).read_text().splitlines()
        return next(i for i in range(text.index(f"class {name}(nn.Module):"), len(text)) if "if y.sum()" in text[i]) + 1

    def figures(self, fixed: frozenset[str], names: Sequence[str] = ()) -> Figures:
        whole = fixed | {cls for name in names for cls in self.removes.get(name, "").split()}
        on = GOING_ON.name in names
        left = {n: c for n, c in self.cost.items() if n not in whole and c}
        shown = {n: c for n, c in left.items() if n not in self.hidden or not set(left) - set(self.hidden)}
        why = {n: self.reasons.get(n, "Data-dependent branching") for n in shown}
        own = {n: f"net.py:{self.line(n)}" for n in shown}
        sites = tuple(Site(own[n], why[n], c, stack=(*self.callers, f"{own[n]} in f")) for n, c in shown.items())
        total = len(left) if on else sum(left.values())
        fewer = self.gives_up in names
        operators = self.operators.get(fixed, 10) - self.lost * fewer
        calls = (CallFigures(0.01, total, 0, 1 + total, 1 + total, 10),)
        counts = Counts(breaks=total, dropped_frames=self.given_up * fewer)
        rest = {"breaks": sites, "calls": calls, "settled": calls}
        return Figures(counts=counts, launches=1 + total, operators=operators, **rest)  # type: ignore[arg-type]

    # --- what the search asks of a bench

    def measure(
        self,
        files: Sequence[FileResult],
        options: Options | None = None,
        fresh: bool = False,
        settings: Sequence[TorchSetting] = (),
    ) -> State:
        changed = [file.after.decode() for file in files if file.changed]
        text = changed[0] if changed else Path(self.path).read_text()
        fixed = frozenset(
            n for n in self.cost if "torch.where" in text.partition(f"class {n}(")[2].partition("class ")[0]
        )
        self.measured.append(fixed)
        names = tuple(setting.name for setting in settings)
        self.set.append(names)
        before = self.figures(frozenset())
        after = self.figures(fixed, names) if names else self.figures(fixed)
        variants = (
            Measurement("original", "eager", None, "ok", figures=before),
            Measurement("original", "compiled", "default", "ok", figures=before),
            Measurement("patched", "compiled", "default", "ok", figures=after),
        )
        same = (Comparison("original", "compiled", "default", Distance(True, 0.0, 0.0)),)
        case = CaseResult("case", 1e-3, False, None, None, variants, same)
        spoilt = [self.spoils[n] for n in names if n in self.spoils and self.needs.get(n) not in fixed]
        late = self.at_length if options is not None and not options.quick else ()
        wrong = {*self.wrong, *late, *(n for n, setting in self.under.items() if setting not in names)}
        status = "different" if fixed & wrong else next(iter(spoilt), "equivalent")
        return State(
            tuple(files),
            results(case),
            Judgement((Verdict("case", "default", status, ("outputs not bitwise equal",)),)),  # type: ignore[arg-type]
            (Seen("case", before, {}),),
            (Seen("case", after, {}),),
        )

    def search(self, settings: Settings | None = None, quick: bool = True) -> Optimizer:
        return searched(self.analysis, self, settings or Settings(), quick=quick)


def searched(analysis: Any, bench: Any, settings: Settings, quick: bool = True, **given: Any) -> Optimizer:
    options = Options(backend="eager", quick=quick)
    one = Optimizer(analysis, settings, bench, options, budget=1000, parts=frozenset({"fixes"}), **given)
    one.run()
    return one


def results(*cases: CaseResult) -> Results:
    nowhere = Environment("2.13", "3.11", "cpu", None, "", 1)
    return Results(backend="eager", quick=True, environment=nowhere, seconds=1.0, cases=cases)


def outcomes(one: Optimizer) -> dict[str, str]:
    """Of fixes by the name of the class, of settings by theirs."""
    best = one.best.configuration if one.best else None
    made = {bundle.label: "kept" for bundle in best.bundles} if best else {}
    made |= {setting.told: "kept" for setting in best.settings} if best else {}
    every = {**{dropped.what: dropped.outcome for dropped in one.dropped}, **made}
    return {w.split()[-1].partition(".")[0] if " in " in w else w.partition(" ")[0]: o for w, o in every.items()}


def kept(one: Optimizer) -> set[str]:
    text = "".join(file.after.decode() for file in one.best.configuration.files) if one.best else ""
    return {n for n in NAMES if "torch.where" in text.partition(f"class {n}(")[2].partition("class ")[0]}


def counted(one: Optimizer) -> tuple[int, int]:
    """Breaks and graphs at the end."""
    assert one.best is not None
    totals = one.best.state.totals("patched")
    assert totals is not None
    return totals.breaks, totals.launches


def test_what_costs_is_fixed_and_kept(tmp_path: Path) -> None:
    one = World(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 0}).search()
    assert kept(one) == {"Alpha", "Beta"}
    assert outcomes(one) == {"Alpha": "kept", "Beta": "kept", "Gamma": "not better"}
    found = verdict(one)
    assert (found.word, found.goal, found.eager_ms) == ("optimized", "graphs", None)
    assert found.lines[0] == "breaks 3 -> 0, recompiles 0 -> 0, graphs 4 -> 1, results equal"
    assert found.lines[1].startswith("kept 2 fixes in 1 file (2 proven); 1 tried and dropped")


@pytest.mark.parametrize("wrong", NAMES)
def test_a_fix_that_changes_results_is_found_and_left_out(tmp_path: Path, wrong: str) -> None:
    one = World(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=[wrong]).search()
    assert kept(one) == set(NAMES) - {wrong}
    assert outcomes(one)[wrong] == "different"


def test_when_all_fixes_are_wrong_nothing_is_left(tmp_path: Path) -> None:
    one = World(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=["Alpha", "Beta"]).search()
    assert one.best is None
    found = verdict(one)
    assert (found.word, found.status) == ("already-best", 0)
    assert found.lines == ["breaks 3, recompiles 0, graphs 4: no fix gave fewer graphs. Nothing was changed."]


def test_a_cause_that_only_shows_when_another_is_gone_is_found(tmp_path: Path) -> None:
    assert kept(World(tmp_path, {"Alpha": 2, "Beta": 1}, hidden=["Beta"]).search()) == {"Alpha", "Beta"}


def test_a_fix_that_makes_no_difference_is_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, {"Alpha": 2, "Beta": 1})
    plain = world.figures  # Beta's break goes away with Alpha's, too
    monkeypatch.setattr(world, "figures", lambda fixed: plain(fixed | {"Beta"} if "Alpha" in fixed else fixed))
    one = world.search()
    assert (kept(one), outcomes(one)) == ({"Alpha"}, {"Alpha": "kept", "Beta": "not better"})


def test_where_each_call_is_one_graph_fewer_operators_are_no_loss(tmp_path: Path) -> None:
    # what was computed of numbers in tensors is computed of numbers
    made = World(tmp_path, {"Alpha": 2})
    made.operators = {frozenset(): 40, frozenset({"Alpha"}): 12}
    assert kept(made.search()) == {"Alpha"}
    made = World(tmp_path, {"Alpha": 2, "Gamma": 1}, wrong=("Gamma",))
    made.operators = {frozenset(): 40, frozenset({"Alpha"}): 12}
    assert kept(made.search()) == set(), "something runs in pieces yet"


@pytest.mark.parametrize(("quick", "left"), [(True, {"Alpha"}), (False, set())])
def test_what_differs_only_when_measured_at_length_is_left_out(tmp_path: Path, quick: bool, left: set[str]) -> None:
    world = World(tmp_path, {"Alpha": 2})
    world.at_length = ["Alpha"]
    one = world.search(quick=quick)
    assert kept(one) == left
    assert outcomes(one)["Alpha"] == ("kept" if quick else "different")


def test_what_changed_between_two_states_is_told() -> None:
    old, new = Totals(4, 2, 10), Totals(0, 3, 1)
    assert change(old, new) == "breaks 4 -> 0, launches 10 -> 1, recompiles 2 -> 3"
    assert change(old, old) == "no count changes"
    less = change(Totals(4, 2, 10, operators=40), Totals(0, 2, 1, operators=12))
    assert less.endswith("captured operators 40 -> 12: less is compiled")


def test_functions_of_one_name_in_two_files_are_two_fixes(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("import torch\nimport torch.nn as nn\n" + CLASS.format(name="Alpha"))
    paths = [str(tmp_path / name) for name in ("a.py", "b.py")]
    analysis = Analysis(paths, load_rules(), Settings())
    found = bundles(analysis.first, Places(paths, str(tmp_path), []))
    assert [bundle.where for bundle in found] == [("a.py:12",), ("b.py:12",)]
    assert len({bundle.key for bundle in found}) == 2


class Ways:
    """An analysis of one file; ``names``: the functions that are fixed, by what the rules are told."""

    own = ("usual", "better", "other")
    rules = (
        SimpleNamespace(code="FC301", name="x", switch="", costs=("graph break",), strategy_key="way", strategies=own),
    )
    first = ()

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "net.py")
        Path(self.path).write_text("class Alpha:\n    def one(self): ...\n    def two(self): ...\n")

    def names(self, settings: Settings) -> list[str]:
        return ["one", "two"] if settings.strategies.get("way") == "better" else ["one"]

    def again(self, settings: Settings) -> tuple[FileResult, ...]:
        names = self.names(settings) if settings.only is None else ["one", "two"]
        units = {name: Unit("FC301", self.path, f"Alpha.{name}") for name in names}
        made = [name for name in names if settings.only is None or units[name] in settings.only]
        told = tuple(
            Reported("FC301", "x", "", 2 + n, 1, 2 + n, 2, "safe", scope=f"Alpha.{name}") for n, name in enumerate(made)
        )
        before = Path(self.path).read_bytes()
        after = before + "".join(f"# {name}\n" for name in made).encode()
        return (FileResult(self.path, before, after, patch=PatchResult(after.decode(), found=told, fixed=told)),)


class Grows(Ways):
    """The second function shows only when a run has come there."""

    def names(self, settings: Settings) -> list[str]:
        return ["one", "two"] if (self.path, "Alpha.two") in settings.traced else ["one"]


@pytest.mark.parametrize(("analysis", "names"), [(Ways, ("usual", "better", "other")), (Grows, ())])
def test_the_tree_ends_with_all_that_helps(tmp_path: Path, analysis: type[Ways], names: tuple[str, ...]) -> None:
    made = analysis(tmp_path)

    class Bench:
        places = Places([made.path], str(tmp_path), [])

        def measure(self, files: Sequence[FileResult], *_: Any, **__: Any) -> State:
            after = self.figures(b"".join(f.after for f in files).count(b"# "))
            variants = (
                Measurement("original", "eager", None, "ok", figures=after),
                Measurement("original", "compiled", "default", "ok", figures=self.figures(0)),
                Measurement("patched", "compiled", "default", "ok", figures=after),
            )
            case = CaseResult("case", 1e-3, False, None, None, variants, ())
            seen = (Seen("case", self.figures(0), {}),), (Seen("case", after, {}),)
            return State(tuple(files), results(case), Judgement((Verdict("case", "default", "equivalent"),)), *seen)

        def figures(self, fixed: int) -> Figures:
            left = [3, 2, 0][fixed]
            place = f"net.py:{2 + fixed}"
            sites = (Site(place, "why", left, stack=(f"{place} in f",)),) if left else ()
            calls = (CallFigures(0.01, left, 0, 1 + left, 1 + left, 10),)
            return Figures(counts=Counts(breaks=left), breaks=sites, calls=calls, settled=calls, launches=1 + left)

    one = searched(made, Bench(), Settings(), strategies={"way": names} if names else {})
    assert one.best is not None
    assert one.best.configuration.files[0].after.endswith(b"# one\n# two\n")
    assert one.best.state.files == one.best.configuration.changed
    assert counted(one) == (0, 1)


# --- settings of PyTorch ------------------------------------------------------------------------------------------

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
MASK = "Dynamic shape operator (capture_dynamic_output_shape_ops)"
SCALARS, SHAPES, RECURRENT = "capture_scalar_outputs", "capture_dynamic_output_shape_ops", "allow_rnn"
UNSAFE = Settings(unsafe=True)


def world(folder: Path, cost: dict[str, int], wrong: Sequence[str] = NAMES) -> World:
    """In which a setting makes a class whole that no fix does."""
    made = World(folder, cost, wrong=wrong)
    made.removes = {SCALARS: "Alpha", SHAPES: "Beta"}
    made.reasons = {"Alpha": ITEM, "Beta": MASK}
    return made


def of_settings(one: Optimizer) -> dict[str, str]:
    told = outcomes(one)
    return {name: told[name] for name in (SCALARS, SHAPES, RECURRENT) if name in told}


def test_settings_that_help_are_kept_and_the_rest_is_left_out(tmp_path: Path) -> None:
    one = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 1}).search(UNSAFE)
    assert of_settings(one) == {SCALARS: "kept", SHAPES: "kept", RECURRENT: "not better"}
    assert counted(one) == (1, 2)


def test_settings_that_no_cause_asks_for_are_left_alone_where_nothing_is_broken_any_more(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1})
    assert of_settings(made.search(UNSAFE)) == {SHAPES: "kept"}
    assert not any(SCALARS in names or RECURRENT in names for names in made.set)


def test_a_setting_for_layers_that_no_file_names_is_not_guessed(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1, "Gamma": 2})
    Path(made.path).write_text(Path(made.path).read_text().replace("LSTM", "layer"))
    made.analysis = Analysis([made.path], load_rules(), Settings())
    assert of_settings(made.search(UNSAFE)) == {SHAPES: "kept", SCALARS: "not better"}
    made.reasons["Gamma"] = "Attempted to wrap RNN, GRU, or LSTM (allow_rnn)"
    made.removes[RECURRENT] = "Gamma"
    assert of_settings(made.search(UNSAFE))[RECURRENT] == "kept", "a cause asks for it"


def test_settings_are_for_those_who_ask_for_unsafe_fixes_and_not_without_the_rule(tmp_path: Path) -> None:
    for asked in (Settings(), Settings(unsafe=True, ignore=("FC710",)), Settings(unsafe=True, select=("FC101",))):
        made = world(tmp_path, {"Alpha": 2, "Beta": 1})
        assert of_settings(made.search(asked)) == {}
        assert set(made.set) <= {()}


def test_a_setting_that_fails_or_changes_results_is_dropped_with_its_reason(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 1})
    made.removes[RECURRENT] = "Gamma"
    made.spoils = {SCALARS: "failed", RECURRENT: "different"}
    assert of_settings(made.search(UNSAFE)) == {SCALARS: "failed", SHAPES: "kept", RECURRENT: "different"}


def test_a_fix_that_does_as_much_is_preferred_to_a_setting(tmp_path: Path) -> None:
    one = world(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=()).search(UNSAFE)
    assert kept(one) == {"Alpha", "Beta"}
    assert "kept" not in of_settings(one).values()


@pytest.mark.parametrize(
    ("cost", "callers", "spoils", "lost", "outcome"),
    [
        ({"Alpha": 2, "Gamma": 3}, ("model.py:3 in forward",), "equivalent", 0, "kept"),
        ({"Alpha": 2, "Gamma": 3}, (), "equivalent", 0, None),  # it is in what is compiled
        ({"Alpha": 2}, ("model.py:3 in forward",), "equivalent", 0, "not better"),  # another setting makes it whole
        ({"Gamma": 1}, ("model.py:3 in forward",), "equivalent", 0, "not better"),
        ({"Gamma": 3}, ("model.py:3 in forward",), "different", 0, "different"),
        ({"Gamma": 3}, ("model.py:3 in forward",), "equivalent", 1, "not better"),  # a frame falls back to eager
    ],
)
def test_graphs_go_on_inside_of_what_others_had_called_where_that_helps(
    tmp_path: Path,
    cost: dict[str, int],
    callers: tuple[str, ...],
    spoils: VerdictStatus,
    lost: int,
    outcome: str | None,
) -> None:
    made = world(tmp_path, cost)
    made.callers, made.given_up, made.lost = callers, lost, lost
    made.spoils = {GOING_ON.name: spoils}
    assert outcomes(made.search(UNSAFE)).get(GOING_ON.name) == outcome


def test_fixes_and_settings_go_together(tmp_path: Path) -> None:
    one = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=("Alpha", "Beta")).search(UNSAFE)
    assert kept(one) == {"Gamma"}
    assert (of_settings(one)[SCALARS], of_settings(one)[SHAPES]) == ("kept", "kept")


def test_a_setting_may_need_a_fix(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=("Alpha", "Beta"))
    made.spoils, made.needs = {SCALARS: "failed"}, {SCALARS: "Gamma"}
    one = made.search(UNSAFE)
    assert kept(one) == {"Gamma"}
    assert of_settings(one)[SCALARS] == "kept"


def test_a_fix_may_need_a_setting(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=())
    made.removes, made.under = {SHAPES: "Beta"}, {"Alpha": SHAPES}
    one = made.search(UNSAFE)
    assert "Alpha" in kept(one)
    assert of_settings(one)[SHAPES] == "kept"
    assert counted(one) == (0, 1)


def test_a_fix_that_no_longer_pays_with_a_setting_goes(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=("Beta",))
    made.removes[SHAPES] = "Alpha Beta"
    one = made.search(UNSAFE)
    assert of_settings(one)[SHAPES] == "kept"
    assert counted(one) == (0, 1)


# --- operators that are written by hand -----------------------------------------------------------------------------

FUSED = """\
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
ASKED = Settings(unsafe=True, switches=frozenset({"silu"}))
ALPHA, BETA = frozenset({"Alpha"}), frozenset({"Beta"})


class Timed:
    """By what is fixed: milliseconds of eager and of compiled code."""

    def __init__(self, folder: Path, eager: dict[frozenset[str], float], compiled: dict[frozenset[str], float]) -> None:
        file = folder / "net.py"
        file.write_text(FUSED)
        self.eager, self.compiled, self.wrong = eager, compiled, frozenset[str]()
        self.analysis = Analysis([str(file)], load_rules(), ASKED)
        self.places = Places([str(file)], str(folder), [])

    def measure(self, files: Sequence[FileResult], *_: Any, **__: Any) -> State:
        text = "".join(file.after.decode() for file in files if file.changed)
        parts = {name: text.partition(f"class {name}(")[2].partition("class ")[0] for name in ("Alpha", "Beta")}
        fixed = frozenset(name for name, part in parts.items() if "F.silu" in part)
        calls = (CallFigures(0.01, 0, 0, 1, 1, 4),)
        variants, same = [], []
        for tree, now in (("original", frozenset[str]()), ("patched", fixed)):
            for kind, ms in (("eager", self.eager.get(now, 10.0)), ("compiled", self.compiled.get(now, 5.0))):
                warm = Warm(ms, 0.99 * ms, 1.01 * ms, ms, 9)
                figures = Figures(counts=Counts(), launches=1, operators=4, warm=warm, calls=calls, settled=calls)
                mode = "default" if kind == "compiled" else None
                variants.append(Measurement(tree, kind, mode, "ok", figures=figures))  # type: ignore[arg-type]
            same.append(Comparison(tree, "compiled", "default", Distance(True, 0.0, 0.0)))  # type: ignore[arg-type]
        case = CaseResult("case", 1e-3, False, None, None, tuple(variants), tuple(same))
        status: VerdictStatus = "different" if fixed & self.wrong else "equivalent"
        judged = Judgement((Verdict("case", "default", status, ("too far apart",)),))
        return State(tuple(files), replace(results(case), backend="inductor"), judged, (), ())

    def search(self, settings: Settings = ASKED, wrong: frozenset[str] = frozenset()) -> Optimizer:
        self.wrong = wrong
        options = Options(quick=True)
        one = Optimizer(self.analysis, settings, self, options, budget=1000, parts=frozenset({"fixes"}))  # type: ignore[arg-type]
        one.run()
        return one


def test_operators_written_by_hand_are_kept_where_eager_code_gets_faster(tmp_path: Path) -> None:
    times = {ALPHA: 6.0, ALPHA | BETA: 3.0}
    assert outcomes(Timed(tmp_path, times, {}).search()) == {"Alpha": "kept", "Beta": "kept"}
    found = verdict(Timed(tmp_path, times, {}).search())
    assert (found.word, found.before_ms, found.after_ms, len(found.fixes)) == ("optimized", 5.0, 5.0, 2)


def test_of_operators_one_of_which_is_wrong_the_other_is_kept(tmp_path: Path) -> None:
    one = Timed(tmp_path, {ALPHA: 6.0, BETA: 6.0, ALPHA | BETA: 3.0}, {}).search(wrong=BETA)
    assert outcomes(one) == {"Alpha": "kept", "Beta": "different"}


@pytest.mark.parametrize("compiled", [5.0, 9.0])
def test_operators_that_gain_nothing_or_slow_compiled_code_are_dropped(tmp_path: Path, compiled: float) -> None:
    eager = 10.0 if compiled == 5.0 else 6.0
    each = {ALPHA: eager, BETA: eager, ALPHA | BETA: eager}
    slow = dict.fromkeys(each, compiled)
    assert outcomes(Timed(tmp_path, each, slow).search()) == {"Alpha": "not better", "Beta": "not better"}


def test_operators_are_not_looked_for_unless_they_are_switched_on(tmp_path: Path) -> None:
    assert outcomes(Timed(tmp_path, {ALPHA | BETA: 1.0}, {}).search(Settings(unsafe=True))) == {}
