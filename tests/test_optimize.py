"""The search of ``optimize``: what is kept, what is dropped, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from patcher.diagnose.asked_settings import asked_settings
from patcher.diagnose.bench import Begun, State
from patcher.diagnose.events import Event
from patcher.diagnose.groups import Group, parsed
from patcher.diagnose.places import Places
from patcher.harness import plan
from patcher.harness.compare import BUDGET_OVER, Judgement, VerdictStatus, ended
from patcher.harness.compare import Verdict as CaseVerdict
from patcher.harness.measured import (
    CallFigures,
    CaseResult,
    Comparison,
    Counts,
    Distance,
    Environment,
    Figures,
    Kind,
    Measurement,
    Memory,
    Replayed,
    Results,
    Tree,
    Warm,
)
from patcher.patching.analysis import Analysis
from patcher.results import FileResult
from patcher.search import pool, session
from patcher.search.call import _diff, _proof
from patcher.search.concluding import verdict
from patcher.search.judged import Span, is_alike, is_less, why_not
from patcher.search.optimizing import Optimizer
from patcher.search.remedies import for_errors
from patcher.search.verdict import Dropped, Kept, Pair, Verdict
from patcher.settings import Settings, TorchSetting
from rules import load_rules

ROOT = Path(__file__).resolve().parents[1]

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        y = self.line(x)
        if not torch.isfinite(y).all():
            raise ValueError("not finite")
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y
"""


@dataclass
class Measured:
    """What a configuration costs. ``cold``: seconds of the first pass; ``settles``: whether it stops compiling.

    ``ends``: whether it is compiled before it is stopped.
    """

    ms: float | None = 10.0
    breaks: int = 0
    cold: float = 5.0
    settles: bool = True
    equal: bool = True
    ends: bool = True
    recompiles: int = 0


def _figures(one: Measured, timed: bool) -> Figures:
    warm = Warm(one.ms, 0.99 * one.ms, 1.01 * one.ms, one.ms, 10) if timed and one.ms is not None else None
    last = CallFigures(0.1, 0, 0, 0 if one.settles else 1, 1 + one.breaks, 10)
    counts = Counts(breaks=one.breaks, recompiles=one.recompiles)
    return Figures(
        settled=(last,),
        counts=counts,
        launches=1 + one.breaks,
        operators=10,
        cold_seconds=one.cold,
        warm=warm,
        memory=Memory(2**30, "cuda"),
    )


@dataclass
class Bench:
    """Answers what a configuration costs from ``told``, which is given its fixed codes and its settings."""

    told: Callable[[frozenset[str], tuple[TorchSetting, ...]], Measured]
    places: Places
    eager: float = 20.0
    original: Measured = field(default_factory=lambda: Measured(15.0, breaks=3))
    error: str = ""
    cuda: str | None = None
    crowded: bool = False
    blocks: tuple[tuple[str, ...], ...] = ()
    measured: int = 0
    asked: list[tuple[frozenset[str], tuple[str, ...], str]] = field(default_factory=list)
    given: list[float] = field(default_factory=list)  # seconds for each

    def measure(
        self,
        files: Sequence[FileResult],
        options: plan.Options,
        fresh: bool = False,
        settings: Sequence[TorchSetting] = (),
    ) -> State:
        self.measured += 1
        self.given.append(options.until - time.monotonic())
        codes = frozenset(fixed.code for file in files if file.patch for fixed in file.patch.fixed)
        self.asked.append((codes, tuple(s.told for s in settings), options.backend))
        timed = options.backend == "inductor"
        patched = self.told(codes, tuple(settings)) if codes or settings else None
        variants = [Measurement("original", "eager", None, "ok", figures=_figures(Measured(self.eager), True))]
        pairs: list[tuple[Tree, Measured | None]] = [("original", self.original), ("patched", patched)]
        for tree, one in pairs:
            failed = (tree == "original" and self.error) or (one is not None and one.ms is None and self.error)
            if one is None:
                continue
            status: Any = "compile-error" if failed else "ok"
            figures = None if failed else _figures(one, timed)
            variants.append(Measurement(tree, "compiled", "default", status, str(failed or ""), figures=figures))
        kinds: list[tuple[Tree, Kind]] = [("original", "compiled"), ("patched", "compiled")]
        compared = tuple(Comparison(tree, kind, "default", Distance(True, 0.0, 0.0)) for tree, kind in kinds)
        case = CaseResult("program", 1e-3, False, "cpu", None, tuple(variants), compared, blocks=self.blocks)
        environment = Environment("2.13.0", "3.11", "cpu", self.cuda, "Linux", 1, 2**37)
        results = Results(backend=options.backend, quick=True, environment=environment, seconds=1.0, cases=(case,))
        status_: VerdictStatus = "equivalent" if patched is None or patched.equal else "different"
        judged = Judgement((CaseVerdict("program", "default", status_, () if status_ == "equivalent" else ("off",)),))
        return State(tuple(files), results, judged, (), ())

    def begin(self, files: Sequence[FileResult], options: plan.Options, settings: Sequence[TorchSetting] = ()) -> Begun:
        """As beside others: everything takes longer."""
        made = self.measure(files, options, settings=settings)
        variants = tuple(
            replace(v, figures=v.figures and replace(v.figures, warm=v.figures.warm and _slower(v.figures.warm)))
            for v in made.results.cases[0].variants
        )
        if self.crowded:
            failed = CaseVerdict("program", "default", "failed", ("patched compiled (default): ran out of memory",))
            made = replace(made, judgement=Judgement((failed,)))
        case = replace(made.results.cases[0], variants=variants)
        codes = frozenset(fixed.code for file in files if file.patch for fixed in file.patch.fixed)
        document: Any = Future() if self.told(codes, tuple(settings)).ends else _Endless()
        stop = threading.Event()
        if isinstance(document, _Endless):
            document.stop = stop
        else:
            document.set_result(replace(made, results=replace(made.results, cases=(case,))))
        return Begun(tuple(files), document, stop)

    def finish(self, begun: Begun) -> State:
        made: Any = begun.document.result()
        assert isinstance(made, State)
        return made


@dataclass
class _Endless:
    """Ends only when it is stopped."""

    stop: threading.Event = field(default_factory=threading.Event)

    def done(self) -> bool:
        return self.stop.is_set()


def _slower(warm: Warm) -> Warm:
    return Warm(3 * warm.median_ms, 3 * warm.low_ms, 3 * warm.high_ms, 3 * warm.min_ms, warm.passes)


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., Optimizer]:
    (tmp_path / "net.py").write_text(MODEL)
    rules = load_rules()
    settings = Settings(unsafe=True)
    analysis = Analysis([str(tmp_path / "net.py")], rules, settings)
    options = plan.Options(command=(), paths=(), modes=("default",), backend="inductor", seconds=100)
    places = Places(analysis.files, str(tmp_path), ())

    def made(told: Callable[..., Measured], at_once: int = 1, **given: Any) -> Optimizer:
        own = {key: given.pop(key) for key in ("parts", "against_eager", "goal") if key in given}
        bench: Any = Bench(told, places, **given)
        one = Optimizer(analysis, settings, bench, options, budget=1000, at_once=at_once, **own)
        one.run()
        return one

    return made


def test_all_fixes_come_first_and_what_changes_no_count_is_taken_out(search: Callable[..., Optimizer]) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0, breaks=0 if "FC102" in codes else 1)

    one = search(told)
    asked = one.bench.asked  # type: ignore[attr-defined]
    assert asked[1] == (frozenset({"FC101", "FC102"}), (), "inductor")
    assert one.best is not None
    assert {unit.code for bundle in one.best.configuration.bundles for unit in bundle.units} == {"FC102"}
    found = verdict(one)
    assert (found.word, found.status, found.eager_ms, found.before_ms, found.after_ms) == ("optimized", 0, 20, 15, 5)
    assert [(fix.code, fix.gain_ms) for fix in found.fixes] == [("FC102", 10)]
    assert [dropped.what.partition(" ")[0] for dropped in found.dropped] == ["FC101"]


@pytest.mark.parametrize(("median", "alike"), [(1.22, True), (1.5, False)])
def test_times_that_noise_hides_are_not_alike_where_the_medians_are_not(median: float, alike: bool) -> None:
    assert is_alike(Span(1.0, 1.2, 2.0), Span(1.0, median, 2.0)) is alike
    assert not is_less(Span(1.0, 1.2, 2.0), Span(1.0, median, 2.0))


def test_no_later_configuration_takes_all_that_is_left(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0 if "FC102" in codes else None, breaks=0))
    bench: Any = one.bench
    timed = [given for given, asked in zip(bench.given, bench.asked, strict=True) if asked[2] == "inductor"]
    assert timed[0] > 500 and timed[-1] > 500  # the first, and the best once more
    assert min(timed) < 30


@pytest.mark.parametrize(("recompiles", "settles", "kept"), [(9, False, True), (36, False, False), (36, True, True)])
def test_where_counts_decide_what_goes_on_compiling_more_often_is_not_kept(
    search: Callable[..., Optimizer], recompiles: int, settles: bool, kept: bool
) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(settles=settles, recompiles=recompiles)

    one = search(told, goal="graphs", original=Measured(breaks=3, settles=False, recompiles=9))
    assert (one.best is not None) is kept


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("graphs", [False, True])
def test_where_there_is_room_everything_is_tried_at_once_and_the_best_alone(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch, graphs: bool, at_once: int
) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        fast = 2.0 if settings else 5.0
        return Measured(fast if "FC102" in codes else 14.0, breaks=0 if "FC102" in codes else 1)

    monkeypatch.setattr(pool, "cores", lambda: 16)
    cuda = "13.0" if graphs else None
    one = search(told, cuda=cuda, at_once=at_once if graphs else 1)
    found = verdict(one)
    assert (found.word, found.eager_ms, found.before_ms) == ("optimized", 20, 15)
    assert (found.after_ms, found.settings) == ((2, {"mode": "reduce-overhead"}) if graphs else (5, {}))
    assert [fix.code for fix in found.fixes] == ["FC102"]


def test_what_takes_far_longer_to_compile_than_what_is_verified_is_stopped(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0 if codes else 14.0, breaks=0 if codes else 1, ends=bool(codes) or not settings)

    monkeypatch.setattr(pool, "cores", lambda: 16)
    monkeypatch.setattr(session, "_FEWEST_SECONDS", 0.5)
    found = verdict(search(told, cuda="13.0", at_once=8))
    assert (found.word, found.after_ms) == ("optimized", 5)
    assert "stopped" in {one.what: one.reason for one in found.dropped}['no fixes, mode="reduce-overhead"']


@pytest.mark.parametrize("whole", [2.0, None])
def test_blocks_of_a_large_model_are_compiled_beside_the_whole(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch, whole: float | None
) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0 if any(s.kind == "blocks" for s in settings) else whole)

    monkeypatch.setattr(pool, "cores", lambda: 16)
    given: dict[str, Any] = {"blocks": (("layers", "net.Net"),), "original": Measured(15.0, breaks=3, cold=9.0)}
    found = verdict(search(told, cuda="13.0", at_once=8, parts=frozenset({"call"}), **given))
    assert (found.word, found.after_ms) == ("optimized", whole or 5.0)


def test_what_fails_for_want_of_room_is_tried_alone(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 16)
    found = verdict(search(lambda codes, settings: Measured(5.0), cuda="13.0", crowded=True))
    assert (found.word, found.after_ms) == ("optimized", 5)


def test_what_could_not_be_compared_is_not_called_different(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(15.0))
    assert one.base is not None
    (case,) = one.base.results.cases
    cut = replace(case, comparisons=(), compare_error="did not end within 1 seconds")
    one.base = replace(one.base, results=replace(one.base.results, cases=(cut,)))
    found = verdict(one)
    assert (found.word, found.said) == ("failed", "did not end within 1 seconds")


def test_a_busy_machine_is_told_and_what_is_slower_at_its_best_is_not_faster(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0))
    assert one.base is not None and not verdict(one).noise
    (case,) = one.base.results.cases
    eager, *others = case.variants
    assert eager.figures is not None
    busy = replace(eager, figures=replace(eager.figures, warm=Warm(60.0, 20.0, 115.0, 4.0, 10)))
    one.base = replace(one.base, results=replace(one.base.results, cases=(replace(case, variants=(busy, *others)),)))
    found = verdict(one)
    assert found.word == "do-not-compile"
    assert found.lines[-1].startswith("one call took 20 to 115 ms (quartiles): the machine is busy")


def test_what_is_as_far_from_eager_as_before_is_not_called_equal_to_it(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0))
    assert one.base is not None and one.best is not None
    assert (verdict(one).equivalent, "results equal" in verdict(one).lines[0]) == (True, True)

    def far(state: State, tree: Tree) -> State:
        (case,) = state.results.cases
        gradients = Distance(False, 0.01, 0.2, relative=0.9)
        apart = Comparison(tree, "compiled", "default", Distance(True, 0.0, 0.0), gradients=gradients)
        return replace(state, results=replace(state.results, cases=(replace(case, comparisons=(apart,)),)))

    one.base, one.best = far(one.base, "original"), replace(one.best, state=far(one.best.state, "patched"))
    found = verdict(one)
    assert (found.word, found.equivalent) == ("optimized", False)
    assert "results as compiled before" in found.lines[0]
    assert "results differ from eager, and do now: gradients" in found.lines[-1]


@pytest.mark.parametrize("cut", [False, True])
def test_where_there_was_no_time_to_rule_rounding_out_nothing_is_said_of_the_model(
    search: Callable[..., Optimizer], cut: bool
) -> None:
    one = search(lambda codes, settings: Measured(15.0, equal=False))
    assert one.base is not None
    (case,) = one.base.results.cases
    far = Comparison("original", "compiled", "default", Distance(False, 0.01, 0.02))
    one.base = replace(one.base, results=replace(one.base.results, cases=(replace(case, comparisons=(far,), cut=cut),)))
    found = verdict(one, compiles=False)
    assert (found.word, "rounding" in found.said) == (("failed", True) if cut else ("do-not-compile", False))


def test_what_is_kept_is_not_said_to_be_dropped(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 16)
    one = search(lambda codes, settings: Measured(5.0 if codes else 14.0), cuda="13.0")
    found = verdict(one)
    assert one.best is not None
    kept = {bundle.label for bundle in one.best.configuration.bundles}
    assert kept
    assert not kept & {dropped.what for dropped in found.dropped}


def test_what_computes_something_else_is_never_kept(search: Callable[..., Optimizer]) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0, equal="FC101" not in codes)

    found = verdict(search(told))
    assert found.word == "optimized"
    assert {fix.code for fix in found.fixes} == {"FC102"}
    assert any(dropped.what.startswith("FC101") and "off" in dropped.reason for dropped in found.dropped)


def test_an_interrupted_search_keeps_no_fix_that_needed_changed_inputs(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0))
    assert one.best is not None
    first, *others = one.best.configuration.bundles
    configuration = replace(one.best.configuration, bundles=(replace(first, compared=True), *others))
    one.best, one._replayed_with = replace(one.best, configuration=configuration), None
    one.leave_out_uncompared()
    assert one.best is None
    assert [fate.outcome for fate in one.dropped if fate.what == first.label] == ["not tried"]
    told = replace(verdict(one), interrupted=True).lines
    assert any(line.startswith(f"not tried, for it was interrupted: {first.label}") for line in told)


@pytest.mark.parametrize(
    ("measured", "word"),
    [
        (Measured(5.0), "optimized"),
        (Measured(14.9, cold=5.0), "already-best"),  # noise
        (Measured(15.0, cold=3.0), "optimized"),  # as fast, and compiled in less time
        (Measured(5.0, settles=False), "already-best"),  # it compiles in each pass
        (Measured(5.0, equal=False), "already-best"),
    ],
)
def test_a_gain_is_beyond_noise_settled_and_equal(
    search: Callable[..., Optimizer], measured: Measured, word: str
) -> None:
    assert verdict(search(lambda codes, settings: measured)).word == word


def test_what_the_budget_cut_off_was_not_tried(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0, equal=False), eager=4.0)
    assert one.base is not None and why_not(one.base).outcome != "not tried"
    cut = Measurement("patched", "compiled", "default", "timeout", BUDGET_OVER)
    case = replace(one.base.results.cases[0], variants=(*one.base.results.cases[0].variants[:2], cut))
    why = why_not(replace(one.base, results=replace(one.base.results, cases=(case,))))
    assert (why.text, why.outcome) == ("not measured to the end: its time was over", "not tried")
    assert ended(cut) == "patched compiled (default): not measured: the budget was used up"
    one.dropped = [Dropped("FC102 in Net.forward", *why)]
    first, last = verdict(one).lines[0], verdict(one).lines[-1]
    assert first.endswith("eager is fastest of what was measured. Nothing was changed.")
    assert last == "not tried, for the budget was over: FC102 in Net.forward; --budget gives more"


def test_what_eager_does_as_fast_is_not_compiled(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0), eager=4.0)
    found = verdict(one)
    told = [fate.outcome for fate in _proof(one, None, found).tried]
    assert told and "kept" not in told, "the report says what the verdict says"
    assert (found.word, found.status, found.after_ms) == ("do-not-compile", 1, 5)
    assert found.fixes == ()
    assert "do not compile this model for latency on this device (cpu); eager is fastest" in found.lines[0]


@pytest.mark.parametrize(
    ("ms", "eager", "word", "last"),
    [
        (5.0, 20.0, "optimized", "first pass"),
        (5.0, 4.0, "optimized", "eager is fastest on this device (cpu)"),
        (5.0, 5.02, "optimized", "no gain over eager beyond noise on this device (cpu)"),
        (15.0, 4.0, "do-not-compile", "eager is fastest. Nothing was changed."),  # and no fix helps
    ],
)
def test_prove_judges_fixes_against_the_model_compiled_as_it_was(
    search: Callable[..., Optimizer], ms: float, eager: float, word: str, last: str
) -> None:
    one = search(
        lambda codes, settings: Measured(ms if codes else 15.0),
        eager=eager,
        parts=frozenset({"fixes"}),
        against_eager=False,
    )
    found = verdict(one)
    assert (found.word, bool(found.fixes)) == (word, word == "optimized")
    assert last in found.lines[-1]
    assert not any(settings for _, settings, _ in one.bench.asked)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cuda", [None, "13.0"])
def test_tune_tries_calls_and_no_fix(search: Callable[..., Optimizer], cuda: str | None) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0 if any(setting.name == "mode" for setting in settings) else 14.9)

    one = search(told, cuda=cuda, parts=frozenset({"call"}))
    found = verdict(one)
    assert (found.word, found.settings) == (
        ("optimized", {"mode": "reduce-overhead"}) if cuda else ("already-best", {})
    )
    assert not any(codes for codes, _, _ in one.bench.asked)  # type: ignore[attr-defined]


def test_for_a_quick_start_blocks_are_compiled_one_by_one(search: Callable[..., Optimizer]) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(15.0, cold=1.0 if any(setting.kind == "blocks" for setting in settings) else 5.0)

    blocks = (("layers", "net.Net"),)
    found = verdict(search(told, blocks=blocks, goal="startup", parts=frozenset({"call"})))
    assert (found.word, found.settings) == ("optimized", {"layers": "net.Net"})
    assert verdict(search(told, blocks=blocks, parts=frozenset({"call"}))).word == "already-best", "5 s are no reason"
    slow = search(told, blocks=blocks, goal="startup", parts=frozenset({"call"}), eager=4.0)
    assert verdict(slow).word == "do-not-compile", "each call is slower than eager"


@pytest.mark.parametrize(
    ("reason", "line", "asked"),
    [
        ("self.n == 3", "self.n += 1", ["allow_unspec_int_on_nn_module"]),
        ("mode.n == 3", "mode.n += 1", []),  # each call has another value
        ("mode.n == 'x3'", "mode.n = names[0]", ["recompile_limit"]),
    ],
)
def test_a_limit_is_raised_only_where_a_bound_may_be_reached(
    tmp_path: Path, reason: str, line: str, asked: list[str]
) -> None:
    file = tmp_path / "net.py"
    file.write_text(f"def f(self, mode):\n    {line}\n")
    places = Places([str(file)], str(tmp_path), ())
    event = Event("limit_hits", "case", "net.py:1", reason, source="net.py:2", function="f")
    group = Group(("recompile",), "recompilation", (event,), places.place("net.py:2"), (parsed(reason),))
    assert [setting.name for setting in asked_settings([group], places, "2.13.0")] == asked


def test_an_original_that_does_not_compile_gets_the_settings_for_its_error(search: Callable[..., Optimizer]) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0 if any(s.name == "recompile_limit" for s in settings) else None)

    one = search(told, error="FailOnRecompileLimitHit: hard failure")
    found = verdict(one)
    assert (found.word, found.before_ms, found.after_ms) == ("optimized", None, 5)
    assert found.settings == {"recompile_limit": 64}
    assert "compiled as it was failed" in found.lines[0]
    assert one.base is not None
    assert [s.name for s in for_errors(one.base)] == ["force_parameter_static_shapes", "recompile_limit"]


def test_a_limit_that_only_puts_the_error_off_is_not_kept(search: Callable[..., Optimizer]) -> None:
    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(5.0 if any(s.name == "recompile_limit" for s in settings) else None, settles=False)

    found = verdict(search(told, error="FailOnRecompileLimitHit: hard failure"))
    assert (found.word, found.settings) == ("do-not-compile", {})


def test_a_program_that_compiles_nothing_is_told_to(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(15.0))
    assert verdict(one).word == "already-best"
    found = verdict(one, "model.compile()", compiles=False)
    assert (found.word, found.after_ms, found.fixes) == ("optimized", 15, ())
    assert found.lines[-1].startswith("compile with: model.compile()")


@pytest.mark.parametrize(("graphs", "word"), [(4, "already-best"), (0, "do-not-compile")])
def test_where_counts_decide_and_nothing_is_kept_nothing_is_optimized(
    search: Callable[..., Optimizer], graphs: int, word: str
) -> None:
    one = search(lambda codes, settings: Measured(15.0, breaks=3), goal="graphs", parts=frozenset[str]())
    assert one.base is not None
    case = one.base.results.cases[0]
    fewer = tuple(replace(v, figures=v.figures and replace(v.figures, launches=graphs)) for v in case.variants)
    one.base = replace(one.base, results=replace(one.base.results, cases=(replace(case, variants=fewer),)))
    found = verdict(one, "model.compile()", compiles=False)
    assert (found.word, found.call if graphs else found.said.partition(":")[0]) == (
        word,
        "model.compile()" if graphs else "nothing is in graphs",
    )


def test_a_program_that_does_not_repeat_itself_is_a_failure(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(15.0))
    assert one.base is not None
    case = one.base.results.cases[0]
    apart = replace(case.comparisons[0], differences=("weights after build(): a.weight has other values",))
    cases = (replace(case, comparisons=(apart, *case.comparisons[1:])),)
    one.base = replace(one.base, results=replace(one.base.results, cases=cases))
    told = "failed: your program does not repeat itself: in a second run a.weight has other values; seed its random"
    found = verdict(one)
    assert (found.status, found.lines[0][: len(told)]) == (2, told)


@pytest.mark.parametrize("compiles", [True, False])
def test_what_computes_something_else_compiled_is_not_equal(search: Callable[..., Optimizer], compiles: bool) -> None:
    one = search(lambda codes, settings: Measured(15.0))
    assert one.base is not None
    (case,) = one.base.results.cases
    off = tuple(replace(each, outputs=Distance(False, 5.0, 9.0, 1.0)) for each in case.comparisons)
    one.base = replace(one.base, results=replace(one.base.results, cases=(replace(case, comparisons=off),)))
    found = verdict(one, compiles=compiles)
    assert found.word == ("failed" if compiles else "do-not-compile")
    assert not found.equivalent
    assert "results equal" not in " ".join(found.lines)


@pytest.mark.parametrize(("eager", "word"), [(20.0, "already-best"), (60.0, "optimized")])
def test_what_is_slow_when_confirmed_is_kept_only_where_eager_code_was_slow_too(
    search: Callable[..., Optimizer], monkeypatch: pytest.MonkeyPatch, eager: float, word: str
) -> None:
    times, usual = iter([5.0, 5.0]), Bench.measure

    def told(codes: frozenset[str], settings: tuple[TorchSetting, ...]) -> Measured:
        return Measured(next(times, 15.0))

    def measure(bench: Bench, *args: Any, fresh: bool = False, **given: Any) -> State:
        bench.eager = eager if fresh else 20.0
        return usual(bench, *args, fresh=fresh, **given)

    monkeypatch.setattr(Bench, "measure", measure)
    found = verdict(search(told))
    assert (found.word, found.eager_ms) == (word, 20.0)


@pytest.mark.parametrize("why", ["was ended by SIGKILL", "no compiler", "TritonMissing: Cannot find a working triton"])
def test_a_fault_of_the_machine_is_a_failure(search: Callable[..., Optimizer], why: str) -> None:
    found = verdict(search(lambda codes, settings: Measured(None), error=why))
    assert (found.word, found.status, found.equivalent) == ("failed", 2, False)
    assert found.lines == [f"failed: original compiled (default): {why}. Nothing was changed."]


@pytest.mark.parametrize("why", ["BackendCompilerFailed: backend='inductor' raised", "was ended by SIGSEGV"])
def test_what_raises_when_it_is_compiled_does_not_pay(search: Callable[..., Optimizer], why: str) -> None:
    found = verdict(search(lambda codes, settings: Measured(None), error=why))
    assert (found.word, found.status, found.equivalent) == ("do-not-compile", 1, False)
    assert found.lines == [
        "eager 20 ms | compiled as it was failed: do not compile this model on this device (cpu). Nothing was changed.",
        f"original compiled (default): {why}",
    ]


def test_what_was_not_tried_is_said() -> None:
    dropped = (Dropped('no fixes, mode="reduce-overhead"', "the budget was over", "not tried"), Dropped("FC101", "no"))
    told = 'not tried, for the budget was over: mode="reduce-overhead"; --budget gives more'
    for word in ("do-not-compile", "already-best"):
        found = Verdict(word, device="cpu", eager_ms=5.0, before_ms=6.0, after_ms=6.0, dropped=dropped)
        assert found.lines[-1] == told
    assert told not in Verdict("already-best", eager_ms=5.0, before_ms=6.0).lines


def test_the_document_has_the_keys_of_the_contract() -> None:
    told = Verdict("failed").json()
    assert told["schema"] == 1
    assert told["verdict"] == "failed"
    contract = (
        "device torch seconds seconds_to_first eager_ms before_ms after_ms cold_s warm_cold_s equivalent "
        "max_difference "
        "breaks recompiles graphs ops_in_graphs call settings fixes dropped files"
    )
    assert set(contract.split()) <= told.keys()
    json.dumps(told)


def test_the_last_lines_say_all_that_is_needed() -> None:
    fixes = (Kept("FC102", "a.py", 3, "proven"), Kept("FC305", "b.py", 4, "assumed", "fewer than 192 tokens"))
    found = Verdict(
        "optimized",
        eager_ms=535.6,
        before_ms=498.0,
        after_ms=98.1,
        max_difference=0.0,
        cold_s=41.0,
        before_cold_s=60.0,
        warm_cold_s=9.0,
        equivalent=True,
        call='torch.compile(Net, mode="reduce-overhead")',
        settings={"mode": "reduce-overhead"},
        fixes=fixes,
        dropped=(Dropped("FC101 in Net", "no count changes without it"),),
        breaks=Pair(7, 0),
    )
    assert found.lines == [
        "eager 535.6 ms | compiled as it was 498.0 ms | now 98.1 ms (5.5x eager, 5.1x compiled), "
        "results equal (max difference 0)",
        "kept 2 fixes in 2 files (1 proven, 1 assumed: fewer than 192 tokens) and 1 setting; 1 tried and dropped",
        "not compared with changed inputs",
        'compile with: torch.compile(Net, mode="reduce-overhead")'
        "          first pass 41 s, before 60 s, later processes 9 s",
    ]
    given = replace(found, replayed=Replayed(72, ("a NaN",), ("autocast: raises TypeError",)))
    told = "only the patched code fails with autocast: raises TypeError; only the original raises with a NaN"
    assert given.lines[2] == f"results equal with 72 changed inputs; {told}"
    assert replace(found, fixes=()).lines[2].startswith("compile with")
    assert replace(found, call="").lines[-1] == "first pass 41 s, before 60 s, later processes 9 s"
    assert found.json()["written"] is False
    assert (
        replace(found, judged="memory 120 MB -> 90 MB | ")
        .lines[0]
        .startswith("memory 120 MB -> 90 MB | eager 535.6 ms")
    )
    assert "(the settings are in the diff)" in replace(found, in_diff="the settings are in the diff").lines[-1]
    cut = replace(found, before_ms=None, before_cut=True, fixes=())
    assert "| compiled as it was: not measured (--budget gives more) | now 98.1 ms (5.5x eager), " in cut.lines[0]


def test_where_the_budget_cut_pruning_one_line_says_so(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0, breaks=0 if codes == {"FC101", "FC102"} else 1))
    assert one.best is not None
    one.budget = 0.0
    bundles = list(one.best.configuration.bundles)
    one._without_unneeded(bundles * 2, one.best.configuration, one._standing(one.best.configuration))
    assert verdict(one).lines[-1] == "not tried, for the budget was over: each fix alone; --budget gives more"


def test_the_goal_is_told_in_its_unit(search: Callable[..., Optimizer]) -> None:
    found = verdict(search(lambda codes, settings: Measured(5.0, cold=2.0), goal="startup", eager=20.0))
    assert found.lines[0].startswith("startup 5 s -> 2 s | eager 20 ms | compiled as it was 15 ms | now 5 ms")


def test_an_assumption_stands_beside_its_hunk(search: Callable[..., Optimizer]) -> None:
    one = search(lambda codes, settings: Measured(5.0))
    assert one.best is not None
    (file,) = one.best.configuration.changed
    assert file.patch is not None
    fixed = (replace(file.patch.fixed[0], applicability="unsafe", assumption="`y` is small"),)
    told = _diff([replace(file, patch=replace(file.patch, fixed=fixed))], one.bench.places).decode()
    heads = [line for line in told.splitlines() if line.startswith("@@")]
    assert heads[0].endswith("@@ assumes: `y` is small") and "assumes" not in "".join(heads[1:])


def test_compiled_results_that_differ_come_first() -> None:
    why = "compiled results differ from eager: gradients beyond the relative limit of 0.01"
    found = Verdict("do-not-compile", device="cpu", eager_ms=5.0, before_ms=4.0, after_ms=4.0, said=why)
    assert found.lines == [
        "eager 5 ms | compiled as it was 4 ms: do not compile this model on this device (cpu). Nothing was changed.",
        why,
    ]


# --- the whole path ------------------------------------------------------------


COUNTING = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.steps = torch.nn.Linear(8, 8), 0

    def forward(self, x):
        self.steps += 1
        return self.lin(x) * (1 + self.steps)


model = torch.compile(Net(), fullgraph=True, dynamic=False)
for _ in range(20):
    model(torch.randn(2, 8))
"""


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "fix_compile.py"), "optimize", "--python", sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_a_program_gets_faster_and_comes_back(tmp_path: Path) -> None:
    for file in (ROOT / "benchmarks" / "demo").glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    before = (tmp_path / "sampler.py").read_text()
    status, out, err = run(tmp_path, "--yes", "--json", "told.json", "--budget", "300", "--", "python", "sample.py")
    told = json.loads((tmp_path / "told.json").read_text())
    assert (status, told["verdict"]) == (0, "optimized"), out + err
    assert told["equivalent"] is True
    assert (told["breaks"][1], told["graphs"][0]) == (0, 0)  # the whole frame was eager before
    assert told["after_ms"] < 0.8 * min(told["eager_ms"], told["before_ms"])
    assert ("FC102", "proven") in [(fix["code"], fix["grade"]) for fix in told["fixes"]]
    assert told["written"] is True
    assert out.startswith("eager ")
    assert "undo: " in out.splitlines()[-1]
    assert "_assert_async" in (tmp_path / "sampler.py").read_text()
    report = (tmp_path / "fix-compile-report.html").read_text()
    assert "optimize" in report and "Other batch sizes, with what is kept" in report
    restore = [sys.executable, str(ROOT / "fix_compile.py"), "restore"]
    subprocess.run(restore, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "sampler.py").read_text() == before


@pytest.mark.slow
def test_where_a_guard_never_ends_no_limit_is_kept(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(COUNTING)
    status, out, _ = run(tmp_path, "--dry-run", "--backend", "eager", "--budget", "120", "--", "python", "program.py")
    assert (status, out.partition(":")[0]) == (1, "do not compile this model"), out
    assert "FailOnRecompileLimitHit" in out


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('nothing')\n", "no module was made"),
        ("import torch\nraise SystemExit('no data')\n", "exit status no data"),
    ],
)
def test_a_program_that_cannot_be_measured_fails(tmp_path: Path, program: str, why: str) -> None:
    (tmp_path / "program.py").write_text(program)
    status, out, _ = run(tmp_path, "--json", "told.json", "--", "python", "program.py")
    assert status == 2
    assert out.startswith("failed: ")
    assert why in out
    assert json.loads((tmp_path / "told.json").read_text())["verdict"] == "failed"


def test_a_python_without_torch_is_told(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(1)\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    status, out, _ = run(tmp_path, "--python", str(python), "--", "python", "program.py")
    assert status == 2
    assert out == f"failed: {python} has no torch; --python names another. Nothing was changed.\n"


def test_a_class_whose_inputs_nobody_knows_is_told(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.replace("self.line(x)", "self.line(x.images) + x.scale"))
    status, out, _ = run(tmp_path, "net.py:Net")
    assert status == 2
    assert "no inputs for net.py:Net are in the repository" in out
    status, _, err = run(tmp_path)
    assert status == 2
    assert "give your program behind --" in err


def test_where_nothing_compiles_nothing_is_called_equal(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "case.py").write_text(
        "import torch\nfrom net import Net\n\ndef build():\n    return Net()\n\n"
        "def calls():\n    return [((torch.randn(2, 4),), {})]\n"
    )
    false = shutil.which("false") or "/bin/false"  # a compiler that is there, and compiles nothing
    missing = {"PATH": "/nonexistent", "CC": false, "CXX": false}
    command = [sys.executable, str(ROOT / "fix_compile.py"), "test", "--quick", "--case", "case.py", "net.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **missing}, check=False
    )
    assert done.returncode == 2, done.stdout
    assert "no compiled code ran, so nothing is proven" in done.stdout
    assert (tmp_path / "net.py").read_text() == MODEL
