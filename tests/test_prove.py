"""The search for the fixes that earn their place, on a bench that answers from a table instead of measuring."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patcher.analysis import Analysis
from patcher.diagnose.asked_settings import GOING_ON
from patcher.diagnose.bench import State
from patcher.diagnose.better import Change, change, difference
from patcher.diagnose.diagnosis import Totals
from patcher.diagnose.events import Seen
from patcher.diagnose.groups import groups
from patcher.diagnose.places import Places
from patcher.diagnose.prove import Ending, Search
from patcher.diagnose.relations import bundles
from patcher.harness.compare import Judgement, Verdict, VerdictStatus
from patcher.harness.measured import (
    CallFigures,
    CaseResult,
    Counts,
    Environment,
    Figures,
    Measurement,
    Results,
    Site,
    Warm,
)
from patcher.harness.plan import Options
from patcher.results import FileResult, PatchResult, Reported
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
        self.milliseconds: dict[frozenset[str], list[float]] = {}  # by what is fixed, for each time it is measured
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
        times = self.milliseconds.get(fixed, [10.0])
        now = times.pop(0) if len(times) > 1 and fixed else times[0]
        warm = Warm(now, 0.99 * now, 1.01 * now, now, 9)
        calls = (CallFigures(0.01, total, 0, 1 + total, 1 + total, 10),)
        counts = Counts(breaks=total, dropped_frames=self.given_up * fewer)
        rest = {"breaks": sites, "warm": warm, "calls": calls, "settled": calls}
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
        variants = tuple(
            Measurement(tree, "compiled", "default", "ok", figures=figures)  # type: ignore[arg-type]
            for tree, figures in (("original", before), ("patched", after))
        )
        case = CaseResult("case", 1e-3, False, None, None, variants, ())
        spoilt = [self.spoils[n] for n in names if n in self.spoils and self.needs.get(n) not in fixed]
        wrong = {*self.wrong, *(n for n, setting in self.under.items() if setting not in names)}
        status = "different" if fixed & wrong else next(iter(spoilt), "equivalent")
        return State(
            tuple(files),
            results(case),
            Judgement((Verdict("case", "default", status, ("outputs not bitwise equal",)),)),  # type: ignore[arg-type]
            (Seen("case", before, {}),),
            (Seen("case", after, {}),),
        )

    def search(self, settings: Settings | None = None) -> Ending:
        costs = {rule.code: rule.costs for rule in load_rules()}
        asked = settings or Settings()
        search = Search(self.analysis, asked, self, costs, Options(), torch="2.13.0")  # type: ignore[arg-type]
        return search.run(groups([Seen("case", self.figures(frozenset()), {})], self.places))


def results(*cases: CaseResult) -> Results:
    nowhere = Environment("2.13", "3.11", "cpu", None, "", 1)
    return Results(
        "fix-compile", (), None, None, "", ("default",), "inductor", "bitwise", True, (), nowhere, "", 1.0, cases
    )


def fates(ending: Ending) -> dict[str, str]:
    return {label.split()[-1].partition(".")[0]: tried.outcome for tried in ending.tried for label in tried.fixes}


def kept(ending: Ending) -> set[str]:
    text = "".join(file.after.decode() for file in ending.files)
    return {n for n in NAMES if "torch.where" in text.partition(f"class {n}(")[2].partition("class ")[0]}


def test_what_costs_is_fixed_and_kept(tmp_path: Path) -> None:
    ending = World(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 0}).search()
    assert kept(ending) == {"Alpha", "Beta"}
    assert fates(ending) == {"Alpha": "kept", "Beta": "kept", "Gamma": "not tried"}
    alpha = next(tried for tried in ending.tried if "Alpha" in tried.fixes[0])
    assert "breaks 2 -> 0" in alpha.reason
    assert "launches 3 -> 1" in alpha.reason
    assert alpha.without is not None
    assert alpha.without.breaks == 2
    assert alpha.diff.count("\n+ ") == 1


def test_a_fix_that_changes_results_is_found_and_left_out(tmp_path: Path) -> None:
    for wrong in NAMES:
        ending = World(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=[wrong]).search()
        assert kept(ending) == set(NAMES) - {wrong}
        assert fates(ending)[wrong] == "different"


def test_when_all_fixes_are_wrong_nothing_is_left(tmp_path: Path) -> None:
    ending = World(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=["Alpha", "Beta"]).search()
    assert kept(ending) == set()
    assert ending.state is None


def test_a_cause_that_only_shows_when_another_is_gone_is_found(tmp_path: Path) -> None:
    ending = World(tmp_path, {"Alpha": 2, "Beta": 1}, hidden=["Beta"]).search()
    assert kept(ending) == {"Alpha", "Beta"}


def test_when_the_time_is_over_nothing_new_is_tried_and_what_was_taken_is_left_out_once(tmp_path: Path) -> None:
    costs = {rule.code: rule.costs for rule in load_rules()}
    for most in (0, 1):
        world = World(tmp_path, {"Alpha": 2, "Beta": 1}, hidden=["Beta"])
        search = Search(world.analysis, Settings(unsafe=True), world, costs, Options(), torch="2.13.0")  # type: ignore[arg-type]
        search.is_over = functools.partial(lambda world, most: len(world.measured) >= most, world, most)
        ending = search.run(groups([Seen("case", world.figures(frozenset()), {})], world.places))
        assert search.cut
        assert kept(ending) == set(["Alpha"][:most])
        beta = [tried for tried in ending.tried if "Beta" in tried.fixes[0]]
        assert [tried.reason for tried in beta] == ["the time for the search was over"][:most]
        assert len(world.measured) == most
    assert "without it and with it: breaks 3 -> 1" in ending.tried[0].reason


def test_a_fix_that_makes_no_difference_is_rolled_back(tmp_path: Path) -> None:
    world = World(tmp_path, {"Alpha": 2, "Beta": 1})
    world.figures_of_all = world.figures  # type: ignore[attr-defined]

    def figures(fixed: frozenset[str]) -> Figures:  # Beta's break goes away with Alpha's, too
        return world.figures_of_all(fixed | {"Beta"} if "Alpha" in fixed else fixed)  # type: ignore[attr-defined,no-any-return]

    world.figures = figures  # type: ignore[method-assign]
    ending = world.search()
    assert kept(ending) == {"Alpha"}
    assert fates(ending) == {"Alpha": "kept", "Beta": "no-op"}


@pytest.mark.parametrize(
    ("with_it", "without", "outcome", "times"),
    [
        ([10.0, 10.0, 10.0], [20.0, 20.0, 20.0], "kept", 3),
        ([10.0, 10.0, 10.0], [20.0, 10.0, 20.0], "no-op", 3),  # once it was as fast
        ([10.0, 30.0, 10.0], [20.0, 20.0, 20.0], "no-op", 3),
        ([20.0, 20.0, 20.0], [10.0, 10.0, 10.0], "not better", 1),  # nothing speaks for it in any case
    ],
)
def test_time_alone_has_to_be_seen_each_time(
    tmp_path: Path, with_it: list[float], without: list[float], outcome: str, times: int
) -> None:
    both, one = frozenset({"Alpha", "Beta"}), frozenset({"Alpha"})
    world = World(tmp_path, {"Alpha": 2, "Beta": 1})
    plain = world.figures

    def figures(fixed: frozenset[str]) -> Figures:  # Beta's break goes away with Alpha's, too
        found: Figures = plain(fixed)
        return found if "Alpha" not in fixed else Figures(counts=Counts(), launches=1, breaks=(), warm=found.warm)

    world.figures = figures  # type: ignore[method-assign]
    world.milliseconds = {both: list(with_it), one: list(without)}
    assert fates(world.search())["Beta"] == outcome
    assert world.measured.count(one) >= times


def test_nothing_to_do_measures_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, {"Alpha": 0, "Beta": 0})
    ending = world.search()
    assert world.measured == []
    assert kept(ending) == set()
    assert set(fates(ending).values()) == {"not tried"}


# --- better or worse --------------------------------------------------------------------------------------------------


def test_counts_decide() -> None:
    old, new = Totals(4, 2, 10), Totals(0, 2, 1)
    assert change(old, new).better == ("breaks 4 -> 0", "launches 10 -> 1")
    assert change(old, new).gain
    assert not change(new, old).gain
    assert not change(old, old).gain
    assert change(old, old).told == "no count changes"


def test_graphs_in_place_of_what_a_limit_left_to_eager_code_are_no_loss() -> None:
    old, new = Totals(0, 8, 2, limit_hits=1), Totals(0, 1, 6)
    assert change(old, new).gain
    assert not change(new, old).gain
    assert not change(Totals(0, 8, 2), new).gain


def test_fewer_breaks_since_less_is_compiled_are_no_gain() -> None:
    old, new = Totals(4, 2, 10, operators=40), Totals(0, 2, 1, operators=12)
    assert change(old, new).worse == ("captured operators 40 -> 12: less is compiled",)
    assert not change(old, new).gain
    assert change(old, Totals(0, 2, 1, operators=38)).gain


def test_where_each_call_is_one_graph_fewer_operators_are_no_loss(tmp_path: Path) -> None:
    # what was computed of numbers in tensors is computed of numbers
    made = World(tmp_path, {"Alpha": 2})
    made.operators = {frozenset(): 40, frozenset({"Alpha"}): 12}
    assert kept(made.search()) == {"Alpha"}
    made = World(tmp_path, {"Alpha": 2, "Gamma": 1}, wrong=("Gamma",))
    made.operators = {frozenset(): 40, frozenset({"Alpha"}): 12}
    assert kept(made.search()) == set(), "something runs in pieces yet"


def test_what_differs_only_when_measured_at_length_is_left_out(tmp_path: Path) -> None:
    world = World(tmp_path, {"Alpha": 2, "Beta": 1})
    costs = {rule.code: rule.costs for rule in load_rules()}
    search = Search(world.analysis, Settings(), world, costs, Options(quick=True))  # type: ignore[arg-type]
    ending = search.run(groups([Seen("case", world.figures(frozenset()), {})], world.places))
    assert kept(ending) == {"Alpha", "Beta"}
    world.wrong = ["Beta"]
    again = search.at_length(ending, Options(quick=False))
    assert kept(again) == {"Alpha"}
    assert fates(again) == {"Alpha": "kept", "Beta": "different"}


def test_what_was_measured_like_that_is_not_measured_again_unless_the_clock_says_something(tmp_path: Path) -> None:
    for backend, again in (("eager", 0), ("inductor", 1)):
        world = World(tmp_path, {"Alpha": 2, "Beta": 1})
        costs = {rule.code: rule.costs for rule in load_rules()}
        quick = Options(quick=True, backend=backend, untimed=backend == "eager")
        search = Search(world.analysis, Settings(), world, costs, quick)  # type: ignore[arg-type]
        ending = search.run(groups([Seen("case", world.figures(frozenset()), {})], world.places))
        before = len(world.measured)
        at_length = search.at_length(ending, Options(quick=True, backend=backend))
        assert at_length.files == ending.files
        assert len(world.measured) - before == again


@pytest.mark.parametrize(
    ("found", "gain"),
    [
        (Change(("breaks",), ()), True),
        (Change(("breaks",), ("recompiles",)), False),
        (Change(("breaks",), ("recompiles",), ("faster",)), True),
        (Change((), (), ("faster",)), True),
        (Change((), ("recompiles",), ("faster",)), True),
        (Change((), (), (), ("slower",)), False),
        (Change(("breaks",), (), (), ("slower",)), False),
        (Change((), ()), False),
    ],
)
def test_what_is_worse_must_be_outweighed_by_time(found: Change, gain: bool) -> None:
    assert found.gain is gain


def state(median: float, cpu: float | None, spread: float = 0.01) -> tuple[State, Any]:
    low, high = median * (1 - spread), median * (1 + spread)
    busy = (None, None, None) if cpu is None else (cpu, 0.99 * cpu, 1.01 * cpu)
    figures = Figures(warm=Warm(median, low, high, low, 9, *busy))
    variant = Measurement("patched", "compiled", "default", "ok", figures=figures)
    case = CaseResult("case", 1e-3, False, None, None, (variant,), ())
    return State((), results(case), Judgement(()), (), ()), "patched"


@pytest.mark.parametrize(
    ("before", "after", "faster"),
    [
        ((10.0, None), (8.0, None), True),
        ((10.0, None), (9.8, None), False),  # less than what a quick run can tell
        ((10.0, 10.0), (8.0, 8.0), True),
        ((10.0, 8.0), (8.0, 8.0), False),  # the machine was busy with something else: the CPU time is the same
        ((10.0, None, 0.3), (8.0, None, 0.3), False),  # the quartiles overlap
    ],
)
def test_time_counts_beyond_noise_only(before: tuple[Any, ...], after: tuple[Any, ...], faster: bool) -> None:
    forth, back = difference(state(*before), state(*after)), difference(state(*after), state(*before))
    assert bool(forth.faster) is faster
    assert bool(back.slower) is faster
    assert not forth.slower


def test_what_does_not_run_in_both_is_no_count(tmp_path: Path) -> None:
    broken = CaseResult("case", 1e-3, False, None, None, (), ())
    nothing: tuple[State, Any] = (State((), results(broken), Judgement(()), (), ()), "patched")
    runs, fails = difference(nothing, state(10.0, None)), difference(state(10.0, None), nothing)
    assert runs.better == ("case (default) runs compiled",)
    assert runs.gain
    assert fails.worse == ("case (default) does not run compiled any more",)
    assert not fails.gain
    assert not difference(nothing, nothing).gain


@pytest.mark.parametrize(
    ("statuses", "proven"),
    [
        (["equivalent"], True),
        (["equivalent", "unproven"], True),  # one of the cases does not come to the changed places
        (["unproven"], False),
        (["equivalent", "different"], False),
        (["equivalent", "invalid"], False),
        (["equivalent", "worse"], False),
        ([], False),
    ],
)
def test_one_case_has_to_run_what_was_changed(statuses: list[Any], proven: bool) -> None:
    verdicts = tuple(Verdict("case", "default", status) for status in statuses)
    assert State((), results(), Judgement(verdicts), (), ()).proven is proven


def test_functions_of_one_name_in_two_files_are_two_fixes(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("import torch\nimport torch.nn as nn\n" + CLASS.format(name="Alpha"))
    paths = [str(tmp_path / name) for name in ("a.py", "b.py")]
    analysis = Analysis(paths, load_rules(), Settings())
    found = bundles(analysis.first, Places(paths, str(tmp_path), []))
    assert [bundle.where for bundle in found] == [("a.py:12",), ("b.py:12",)]
    assert len({bundle.key for bundle in found}) == 2


class TwoWays:
    """An analysis of one file in which ``way=better`` mends two functions and the usual way one."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "net.py")
        Path(self.path).write_text("class Alpha:\n    def one(self): ...\n    def two(self): ...\n")

    def again(self, settings: Settings) -> tuple[FileResult, ...]:
        names = ["one", "two"] if settings.strategies.get("way") == "better" else ["one"]
        units = {name: Unit("FC301", self.path, f"Alpha.{name}") for name in names}
        made = [name for name in names if settings.only is None or units[name] in settings.only]
        told = tuple(
            Reported("FC301", "x", "", 2 + n, 1, 2 + n, 2, "safe", strategy="s", scope=f"Alpha.{name}")
            for n, name in enumerate(made)
        )
        before = Path(self.path).read_bytes()
        after = before + "".join(f"# {name}\n" for name in made).encode()
        return (FileResult(self.path, before, after, patch=PatchResult(after.decode(), found=told, fixed=told)),)


def test_the_tree_ends_with_all_that_the_better_strategy_makes(tmp_path: Path) -> None:
    analysis = TwoWays(tmp_path)

    class Bench:
        places = Places([analysis.path], str(tmp_path), [])

        def measure(self, files: Sequence[FileResult], *_: Any, **__: Any) -> State:
            left = [3, 2, 0][b"".join(f.after for f in files).count(b"# ")]
            sites = (Site("net.py:2", "why", left),) if left else ()
            before = Figures(counts=Counts(breaks=3), breaks=(Site("net.py:2", "why", 3),))
            after = Figures(counts=Counts(breaks=left), breaks=sites)
            variants = (
                Measurement("original", "compiled", "default", "ok", figures=before),
                Measurement("patched", "compiled", "default", "ok", figures=after),
            )
            case = CaseResult("case", 1e-3, False, None, None, variants, ())
            verdicts = (Verdict("case", "default", "equivalent"),)
            seen = (Seen("case", before, {}),), (Seen("case", after, {}),)
            return State(tuple(files), results(case), Judgement(verdicts), *seen)

    names = {"way": ("usual", "better", "other")}
    search = Search(analysis, Settings(), Bench(), {"FC301": ("graph break",)}, Options(), names)  # type: ignore[arg-type]
    causes = groups([Seen("case", Figures(breaks=(Site("net.py:2", "why", 3),)), {})], Bench.places)
    ending = search.run(causes)
    assert ending.files[0].after.endswith(b"# one\n# two\n")
    assert ending.state is not None
    assert ending.state.files == ending.files
    fates_of = {label: tried.outcome for tried in ending.tried for label in tried.fixes}
    assert fates_of["way=better"] == "kept"
    assert "way=usual" not in fates_of  # the same text: not measured


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


def outcomes(ending: Ending) -> dict[str, str]:
    return {t.fixes[0].removeprefix("FC710 ").partition(" ")[0]: t.outcome for t in ending.tried}


def settings_fates(ending: Ending) -> dict[str, str]:
    told = outcomes(ending)
    return {name: told[name] for name in (SCALARS, SHAPES, RECURRENT) if name in told}


def test_settings_that_help_are_kept_and_the_rest_is_left_out(tmp_path: Path) -> None:
    ending = world(tmp_path, {"Alpha": 2, "Beta": 1}).search(UNSAFE)
    assert settings_fates(ending) == {SCALARS: "kept", SHAPES: "kept", RECURRENT: "no-op"}
    assert [setting.name for setting in ending.unwritten] == [SHAPES, SCALARS], "nothing there compiles"
    assert ending.state is not None
    assert ending.state.totals("patched").launches == 1  # type: ignore[union-attr]


def test_settings_that_no_cause_asks_for_are_left_alone_where_nothing_is_broken_any_more(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1})
    assert settings_fates(made.search(UNSAFE)) == {SHAPES: "kept"}
    assert made.set.count((SHAPES,)) == 1
    assert not any(SCALARS in names or RECURRENT in names for names in made.set)


def test_settings_that_no_cause_asks_for_go_together_when_they_come_to_no_more(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1, "Gamma": 2})
    made.reasons["Gamma"] = "Data-dependent branching"
    assert settings_fates(made.search(UNSAFE)) == {SHAPES: "kept", SCALARS: "no-op", RECURRENT: "no-op"}
    assert [len(names) for names in made.set if SCALARS in names or RECURRENT in names] == [3], "measured once"


def test_a_setting_for_layers_that_no_file_names_is_not_guessed(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1, "Gamma": 2})
    made.reasons["Gamma"] = "Data-dependent branching"
    Path(made.path).write_text(Path(made.path).read_text().replace("LSTM", "layer"))
    made.analysis = Analysis([made.path], load_rules(), Settings())
    assert settings_fates(made.search(UNSAFE)) == {SHAPES: "kept", SCALARS: "no-op"}
    made.reasons["Gamma"] = "Attempted to wrap RNN, GRU, or LSTM (allow_rnn)"
    made.removes[RECURRENT] = "Gamma"
    assert settings_fates(made.search(UNSAFE))[RECURRENT] == "kept", "a cause asks for it"


def test_what_is_asked_for_later_goes_at_once_when_it_comes_to_no_more(tmp_path: Path) -> None:
    made = world(tmp_path, {"Beta": 1, "Gamma": 2})
    made.hidden = ["Gamma"]  # it shows when Beta is gone
    made.reasons["Gamma"] = "Attempted to wrap RNN, GRU, or LSTM (allow_rnn)"
    assert settings_fates(made.search(UNSAFE)) == {SHAPES: "kept", RECURRENT: "no-op"}
    assert [names for names in made.set if RECURRENT in names] == [(RECURRENT, SHAPES)], "measured once"


def test_settings_are_for_those_who_ask_for_unsafe_fixes_and_not_without_the_rule(tmp_path: Path) -> None:
    for asked in (Settings(), Settings(unsafe=True, ignore=("FC710",)), Settings(unsafe=True, select=("FC101",))):
        made = world(tmp_path, {"Alpha": 2, "Beta": 1})
        assert settings_fates(made.search(asked)) == {}
        assert set(made.set) <= {()}


def test_a_setting_that_fails_or_changes_results_is_taken_back_with_its_reason(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 1})
    made.removes[RECURRENT] = "Gamma"
    made.spoils = {SCALARS: "failed", RECURRENT: "different"}
    ending = made.search(UNSAFE)
    assert settings_fates(ending) == {SCALARS: "failed", SHAPES: "kept", RECURRENT: "different"}
    assert all(t.reason for t in ending.tried if t.outcome in ("failed", "different"))


def test_a_fix_that_does_as_much_is_preferred_to_a_setting(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=())
    ending = made.search(UNSAFE)
    assert kept(ending) == {"Alpha", "Beta"}
    assert settings_fates(ending) == {}, "there was nothing more to gain"


def test_graphs_go_on_inside_of_what_others_had_called_where_that_helps(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Gamma": 3})
    made.callers = ("model.py:3 in forward",)
    ending = made.search(UNSAFE)
    assert outcomes(ending)[GOING_ON.name] == "kept", "Gamma breaks in itself and in two that call it"
    assert settings_fates(ending)[SCALARS] == "kept"
    assert ending.state is not None
    assert ending.state.totals("patched").breaks == 1  # type: ignore[union-attr]


def test_that_is_not_tried_where_nothing_had_called_it_or_nothing_breaks(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Gamma": 3})
    made.search(UNSAFE)
    assert not any(GOING_ON.name in names for names in made.set), "it stands in what is compiled"
    made = world(tmp_path, {"Alpha": 2})
    made.callers = ("model.py:3 in forward",)
    made.search(UNSAFE)
    assert not any(GOING_ON.name in names for names in made.set), "the setting makes it whole"


def test_it_goes_where_it_comes_to_no_more_or_changes_results(tmp_path: Path) -> None:
    made = world(tmp_path, {"Gamma": 1})
    made.callers = ("model.py:3 in forward",)
    assert outcomes(made.search(UNSAFE))[GOING_ON.name] == "no-op"
    made = world(tmp_path, {"Gamma": 3})
    made.callers, made.spoils = ("model.py:3 in forward",), {GOING_ON.name: "different"}
    assert outcomes(made.search(UNSAFE))[GOING_ON.name] == "different"


def test_frames_that_are_given_up_then_are_no_loss_where_they_held_no_operator(tmp_path: Path) -> None:
    for lost, outcome in ((0, "kept"), (1, "no-op")):
        made = world(tmp_path, {"Gamma": 3})
        made.callers, made.given_up, made.lost = ("model.py:3 in forward",), 1, lost
        assert outcomes(made.search(UNSAFE))[GOING_ON.name] == outcome


def test_a_setting_with_which_a_frame_without_operators_is_given_up_is_kept(tmp_path: Path) -> None:
    for lost, outcome in ((0, "kept"), (1, "not better")):
        made = world(tmp_path, {"Beta": 2, "Gamma": 1}, wrong=NAMES)
        made.gives_up, made.given_up, made.lost = SHAPES, 1, lost
        assert settings_fates(made.search(UNSAFE))[SHAPES] == outcome


def test_fixes_and_settings_go_together(tmp_path: Path) -> None:
    ending = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=("Alpha", "Beta")).search(UNSAFE)
    assert kept(ending) == {"Gamma"}
    assert settings_fates(ending) == {SCALARS: "kept", SHAPES: "kept", RECURRENT: "no-op"}


def test_a_fix_that_is_made_under_a_setting_is_found_behind_other_fixes(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1, "Delta": 2}, wrong=("Beta",))
    made.removes, made.reasons, made.under = {SHAPES: "Beta"}, {"Beta": MASK}, {"Delta": SHAPES}
    ending = made.search(UNSAFE)
    assert {t.fixes[0] for t in ending.tried if t.outcome == "kept"} == {
        "FC101 in Alpha.forward",
        "FC101 in Delta.forward",
        f"FC710 {SHAPES} = True",
    }
    assert ending.state is not None
    assert ending.state.totals("patched").breaks == 0  # type: ignore[union-attr]


def test_a_setting_may_need_a_fix(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1, "Gamma": 3}, wrong=("Alpha", "Beta"))
    made.spoils, made.needs = {SCALARS: "failed"}, {SCALARS: "Gamma"}
    ending = made.search(UNSAFE)
    assert kept(ending) == {"Gamma"}
    assert settings_fates(ending)[SCALARS] == "kept"


def test_a_fix_that_no_longer_pays_with_a_setting_goes(tmp_path: Path) -> None:
    made = world(tmp_path, {"Alpha": 2, "Beta": 1}, wrong=("Beta",))
    made.removes[SHAPES] = "Alpha Beta"
    ending = made.search(UNSAFE)
    assert kept(ending) == set()
    assert fates(ending)["Alpha"] in ("no-op", "not better")
    assert settings_fates(ending) == {SHAPES: "kept"}


# --- what is left out of graphs stands in the way of settings -------------------------------------------------------

CLUSTER = """

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 4)

    def positions(self, grid: torch.Tensor, merge: int):
        found = []
        for frames, height, width in grid.tolist():
            rows = torch.arange(height).view(-1, 1).expand(height, width)
            for _ in range(frames):
                found.append(rows.flatten() // merge)
        return torch.cat(found) / grid.prod(dim=-1).max().item()

    def forward(self, grid):
        return self.lin(self.positions(grid, 2)).relu()
"""


class Clusters(World):
    """Each class reads numbers in a function that FC204 leaves out of graphs; its cost by (is left out, is set)."""

    def __init__(self, folder: Path, costs: dict[str, dict[tuple[bool, bool], int]]) -> None:
        super().__init__(folder, {})
        self.costs = costs
        text = "import torch\nimport torch.nn as nn\n" + "".join(CLUSTER.format(name=name) for name in costs)
        Path(self.path).write_text(text)
        self.analysis = Analysis([self.path], load_rules(), Settings())

    def cost_of(self, text: str, on: bool) -> Figures:
        lines = Path(self.path).read_text().splitlines()
        sites = []
        for name, costs in self.costs.items():
            out = "compiler.disable" in text.partition(f"class {name}(")[2].partition("def positions")[0]
            start = lines.index(f"class {name}(nn.Module):")
            at = next(i for i in range(start, len(lines)) if "grid.tolist()" in lines[i]) + 1
            if count := costs[out, on]:
                sites.append(Site(f"net.py:{at}", ITEM, count, stack=(f"net.py:{at} in positions",)))
        total = sum(site.count for site in sites)
        calls = (CallFigures(0.01, total, 0, 1 + total, 1 + total, 10),)
        rest = {"breaks": tuple(sites), "calls": calls, "settled": calls, "operators": 10}
        return Figures(counts=Counts(breaks=total), launches=1 + total, **rest)  # type: ignore[arg-type]

    def figures(self, fixed: frozenset[str], names: Sequence[str] = ()) -> Figures:
        return self.cost_of(Path(self.path).read_text(), False)

    def measure(
        self,
        files: Sequence[FileResult],
        options: Options | None = None,
        fresh: bool = False,
        settings: Sequence[TorchSetting] = (),
    ) -> State:
        changed = [file.after.decode() for file in files if file.changed]
        names = tuple(setting.name for setting in settings)
        after = self.cost_of(changed[0] if changed else Path(self.path).read_text(), SCALARS in names)
        base = super().measure(files, options, fresh, settings)
        (case,) = base.results.cases
        now = Measurement("patched", "compiled", "default", "ok", figures=after)
        return replace(
            base, results=results(replace(case, variants=(case.variants[0], now))), after=(Seen("case", after, {}),)
        )


def clusters_kept(ending: Ending) -> set[str]:
    return {t.fixes[0] for t in ending.tried if t.outcome == "kept"}


def test_a_setting_takes_the_place_of_what_leaves_a_function_out(tmp_path: Path) -> None:
    made = Clusters(tmp_path, {"Alpha": {(False, False): 4, (True, False): 2, (False, True): 1, (True, True): 2}})
    assert [f.applicability for r in made.analysis.first if r.patch for f in r.patch.fixed] == ["safe"]
    ending = made.search(UNSAFE)
    assert clusters_kept(ending) == {f"FC710 {SCALARS} = True"}
    assert not any(b"compiler.disable" in file.after for file in ending.files)
    (left,) = [t for t in ending.tried if t.fixes == ("FC204 in Alpha.positions",)]
    assert (left.outcome, left.reason.startswith("without it, and with what is kept: 2 graphs")) == ("not better", True)


def test_where_the_setting_does_less_the_function_stays_left_out(tmp_path: Path) -> None:
    made = Clusters(tmp_path, {"Alpha": {(False, False): 4, (True, False): 1, (False, True): 2, (True, True): 1}})
    assert clusters_kept(made.search(UNSAFE)) == {"FC204 in Alpha.positions"}
    assert clusters_kept(made.search(Settings())) == {"FC204 in Alpha.positions"}, "and where nobody asks for settings"


def test_of_two_that_are_left_out_only_the_one_in_the_way_goes(tmp_path: Path) -> None:
    in_the_way = {(False, False): 5, (True, False): 3, (False, True): 0, (True, True): 3}
    earns = {(False, False): 4, (True, False): 1, (False, True): 4, (True, True): 1}
    ending = Clusters(tmp_path, {"Alpha": in_the_way, "Beta": earns}).search(UNSAFE)
    assert clusters_kept(ending) == {f"FC710 {SCALARS} = True", "FC204 in Beta.positions"}


def test_two_fixes_that_leave_out_are_better_than_a_setting_in_one(tmp_path: Path) -> None:
    costs = {(False, False): 5, (True, False): 1, (False, True): 2, (True, True): 1}
    ending = Clusters(tmp_path, {"Alpha": costs, "Beta": costs}).search(UNSAFE)
    assert clusters_kept(ending) == {"FC204 in Alpha.positions", "FC204 in Beta.positions"}
