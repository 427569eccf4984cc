"""What the diagnostics conclude from figures: nothing that the figures do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.diagnostics import NAMES, QUICK, USUAL, diagnostics, probes
from patcher.diagnose.timings import number
from patcher.diagnose.varied import dimensions
from patcher.harness.compare import judge
from patcher.harness.measured import (
    CaseResult,
    Counts,
    Environment,
    Figures,
    Kind,
    Measurement,
    Memory,
    PatchedFile,
    ProbeResult,
    Results,
    Tree,
    Warm,
)
from patcher.report.harness import case_rows
from patcher.words import code

WARM = {"median_ms": 10.0, "low_ms": 9.9, "high_ms": 10.1, "min_ms": 9.8, "passes": 9}


def warm(median: float, spread: float = 0.01) -> Warm:
    return Warm(median, median * (1 - spread), median * (1 + spread), median * (1 - spread), 9)


def told_warm(median: float) -> dict[str, Any]:
    made = warm(median)
    return {"median_ms": made.median_ms, "low_ms": made.low_ms, "high_ms": made.high_ms, "min_ms": 1.0, "passes": 9}


def results(*variants: Measurement, probe: ProbeResult | None = None, overlay: bool = False) -> Results:
    case = CaseResult("m", 1e-3, False, "cpu", None, variants, (), probes=(probe,) if probe else ())
    patched = (PatchedFile("a.py", "", ""),) if overlay else ()
    environment = Environment("2.13", "3.11", "cpu", None, "Linux", 1)
    return Results(overlay=patched, environment=environment, seconds=1.0, cases=(case,))


def variant(
    tree: Tree, kind: Kind, median: float, cold: float = 1.0, memory: int = 100_000_000, breaks: int = 0
) -> Measurement:
    figures = Figures(cold_seconds=cold, warm=warm(median), memory=Memory(memory, "rss"), counts=Counts(breaks=breaks))
    return Measurement(tree, kind, "default" if kind == "compiled" else None, "ok", figures=figures, seconds=2.0)


def of(name: str, figures: Mapping[str, Any], *variants: Measurement) -> Diagnostic:
    (told,) = diagnostics(results(*variants, probe=ProbeResult(name, "ok", seconds=3.0, figures=figures)), [name])
    assert told.status == "ok", told
    assert all(len(row) == len(told.columns) for row in told.rows)
    assert told.seconds == 3.0 or name == "baseline"
    return told


def text(told: Diagnostic) -> str:
    return "\n".join(told.conclusions)


# All of them.


def test_which_need_a_process() -> None:
    assert probes(NAMES) == ("fullgraph", "vary-batch", "vary-sequence", "latency", "ablation", "fusions")
    assert probes(QUICK) == ("fullgraph",)
    assert probes(USUAL) == ("fullgraph", "vary-batch", "vary-sequence")


def test_by_name_and_then_by_case() -> None:
    one = results()
    two = replace(one, cases=(one.cases[0], replace(one.cases[0], name="n")))
    told = diagnostics(two, ["latency", "fullgraph"])
    assert [(d.name, d.case) for d in told] == [
        ("latency", "m"),
        ("latency", "n"),
        ("fullgraph", "m"),
        ("fullgraph", "n"),
    ]


@pytest.mark.parametrize("name", probes(NAMES))
def test_one_that_was_not_run_or_failed_says_so(name: str) -> None:
    (missing,) = diagnostics(results(), [name])
    assert (missing.status, missing.message, missing.rows) == ("skipped", "it was not run", ())
    failed = ProbeResult(name, "timeout", "did not end within 3 seconds", seconds=3.0)
    (told,) = diagnostics(results(probe=failed), [name])
    assert (told.status, told.message, told.seconds) == ("timeout", "did not end within 3 seconds", 3.0)
    (odd,) = diagnostics(results(probe=ProbeResult(name, "ok", figures={"calls": [{}], "blocks": 1})), [name])
    assert (odd.status, odd.rows) == ("error", ())


@pytest.mark.parametrize(
    ("value", "wanted"), [(0.01234, "0.0123"), (12.34, "12.3"), (123.4, "123"), (None, "-"), ("nan", "nan"), (0, "0")]
)
def test_numbers(value: Any, wanted: str) -> None:
    assert number(value) == wanted


def test_code_in_sentences() -> None:
    assert (code("a"), code("a`b")) == ("`a`", "``a`b``")


# fullgraph


def call(captured: bool = True, launches: int = 1, message: str = "", seconds: float | None = 1.0) -> dict[str, Any]:
    return {"call": 1, "captured": captured, "launches": launches, "message": message, "seconds": seconds}


def fullgraph(*calls: dict[str, Any], implied: bool = True) -> dict[str, Any]:
    return {
        "backend": "inductor",
        "own_compile": False,
        "calls": list(calls),
        "implied": {"scalars": implied, "shapes": implied},
    }


def test_passing_fullgraph_does_not_mean_no_breaks_by_default() -> None:
    told = of("fullgraph", fullgraph(call(), call()), variant("original", "compiled", 1.0, breaks=7))
    assert told.conclusions[0] == "All 2 calls are captured whole."
    assert "passing it does not mean that there are no breaks by default" in told.conclusions[1]
    assert told.conclusions[2] == "By default the same calls break 7 times, over all counted passes."
    older = of("fullgraph", fullgraph(call(), implied=False))
    assert older.conclusions == ("The call is captured whole.",)


def test_what_cannot_be_captured_is_told_once() -> None:
    broken = call(False, 0, "Unsupported: a branch (m.py:3)", None)
    told = of("fullgraph", fullgraph(broken, broken, call()))
    assert text(told).count("Unsupported: a branch (m.py:3)") == 1
    assert told.conclusions[0].startswith("2 of 3 calls cannot be captured whole: ")
    assert told.rows[0] == ("1", "no", "0", "-", "Unsupported: a branch (m.py:3)")


def test_nothing_compiled_is_no_success() -> None:
    told = of("fullgraph", fullgraph(call(launches=0)))
    assert told.conclusions == ("1 of 1 calls ran no compiled graph: of them this says nothing.",)
    assert told.rows[0][1] == "-"


# baseline


def baseline(*variants: Measurement, overlay: bool = False) -> Diagnostic:
    (told,) = diagnostics(results(*variants, overlay=overlay), ["baseline"])
    assert all(len(row) == len(told.columns) for row in told.rows)
    return told


def test_warm_is_compared_with_warm() -> None:
    eager, compiled = variant("original", "eager", 20.0), variant("original", "compiled", 10.0, 5.0, 150_000_000)
    told = baseline(eager, compiled)
    assert [row[0] for row in told.rows] == ["original eager", "original compiled (default)"]
    assert told.rows[1][1:] == ("5", "10 [9.9-10.1]", "2.00x", "150 (rss)", "1.50x")
    # 4.99 s more than a warm pass, 10 ms gained in each
    assert text(told).endswith("made up for after about 500 passes.")
    assert "2.00 times as fast as eager" in text(told)


@pytest.mark.parametrize(
    ("cold", "wanted"),
    [
        (123.06, "about 12000 passes."),
        (12.44, "about 1200 passes."),
        (0.385, "about 38 passes."),
        (0.019, "about 1 pass."),
        (0.005, "about 1 pass."),
    ],
)
def test_how_many_passes_make_up_for_the_first_is_no_exact_figure(cold: float, wanted: str) -> None:
    told = baseline(variant("original", "eager", 20.0), variant("original", "compiled", 10.0, cold))
    assert text(told).endswith(f"made up for after {wanted}")


@pytest.mark.parametrize(("patched", "wanted"), [(5.0, "2.00x."), (9.9, "1.01x (noise)."), (9.7, "1.03x.")])
def test_patched_is_compared_with_the_original_as_in_the_case_table(patched: float, wanted: str) -> None:
    """There too, overlapping quartile ranges are noise, and nothing else is."""
    variants = [variant("original", "eager", 50.0), variant("original", "compiled", 10.0)]
    measured = results(*variants, variant("patched", "compiled", patched), overlay=True)
    (told,) = diagnostics(measured, ["baseline"])
    assert told.conclusions[-1] == f"patched compiled (default) against original compiled (default): {wanted}"
    assert case_rows(measured, judge(measured))[0][8] == wanted.rstrip(".")
    (alone,) = diagnostics(replace(measured, overlay=()), ["baseline"])
    assert "against original" not in text(alone)


def test_a_difference_within_noise_is_none() -> None:
    eager = variant("original", "eager", 10.3)
    told = baseline(eager, variant("original", "compiled", 10.0))
    assert told.rows[1][3] == "1.03x (noise)"
    assert "as fast as eager within noise" in text(told)


def test_what_is_slower_is_told_so() -> None:
    told = baseline(variant("original", "eager", 10.0), variant("original", "compiled", 30.0))
    assert text(told) == "original compiled (default): slower than eager, 3 times the time of a warm pass."


def test_patched_only_where_something_is_patched() -> None:
    variants = variant("original", "eager", 10.0), variant("patched", "compiled", 1.0)
    assert "patched" not in text(baseline(*variants))
    told = baseline(*variants, overlay=True)
    assert "patched compiled (default): 10.00 times as fast as eager" in text(told)
    assert "original compiled (default): skipped." in text(told)


# vary-batch, vary-sequence

MARKS = "`maybe_mark_dynamic` on dimension 0 of `ids`, dimensions 0 and 2 of `cache[*].key`"


def counts(recompiles: int = 0, breaks: int = 0, launches: int = 1, operators: int = 10, **more: int) -> dict[str, int]:
    made = dict.fromkeys(("graphs", "limit_hits", "dropped_frames"), 0)
    return {**made, "recompiles": recompiles, "breaks": breaks, "launches": launches, "operators": operators, **more}


def setting(name: str, *recompiles: int, again: dict[str, int] | None = None, **more: int) -> dict[str, Any]:
    return {
        "name": name,
        "status": "ok",
        "message": "",
        "steps": [counts(n, **more) for n in recompiles],
        "again": again or counts(launches=len(recompiles), operators=10 * len(recompiles)),
        "reasons": [{"function": "forward", "where": "m.py:3", "guard": "x.size()[0] == 2  # x.view(2)"}],
    }


def failing(name: str) -> dict[str, Any]:
    return {"name": name, "status": "compile-error", "message": "UserError: why (m.py:4)", "seconds": 0.1}


def varied(*settings: dict[str, Any], marks: bool = True) -> dict[str, Any]:
    return {
        "dimension": "batch",
        "chosen": True,
        "steps": [{"call": 1, "sizes": [size]} for size in (2, 3, 1)],
        "backend": "aot_eager",
        "own_compile": False,
        "marks": [{"path": "ids", "dims": [0]}, {"path": "cache[0].key", "dims": [0, 2]}] if marks else [],
        "model": "Model",
        "settings": list(settings),
    }


def test_marks_that_help_are_named_with_parameter_and_dimension() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 1, 1), setting("marked", 0, 0, 1)))
    assert told.conclusions[0] == "As it is: 2 recompilations over all batch sizes."
    assert f"With {MARKS}: recompilations 2 -> 1." in told.conclusions
    assert "before the call of the compiled Model" in text(told)
    calls = "`torch._dynamo.maybe_mark_dynamic(ids, 0)`, `torch._dynamo.maybe_mark_dynamic(cache[i].key, [0, 2])`"
    assert f"In code: {calls}, for each item i." in told.conclusions
    assert "still compiled again: forward (m.py:3): the size of `x` (dim 0)." in text(told)
    assert told.rows[0] == ("as it is", "2", "0", "0", "0", "0", "1")
    assert told.rows[3] == ("as it is", "all again", "0", "0", "0", "0", "3")


def test_the_second_round_counts() -> None:
    automatic = setting("automatic", 0, 1, 1, again=counts(2, launches=3, operators=30))
    told = of("vary-batch", varied(automatic, setting("marked", 0, 2, 1)))
    assert "recompilations 4 -> 3" in text(told)


def test_marks_that_do_not_help() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 1, 0), setting("marked", 0, 1, 0)))
    assert f"With {MARKS}: recompilations 1 -> 1." in told.conclusions
    assert "torch._dynamo.maybe_mark_dynamic" not in text(told)


@pytest.mark.parametrize(
    ("worse", "named"),
    [
        ({"breaks": 1}, "breaks 0 -> 3"),
        ({"limit_hits": 1}, "recompile-limit hits 0 -> 3"),
        ({"dropped_frames": 1}, "dropped frames 0 -> 3"),
        ({"again": counts(launches=9, operators=30)}, "launches 3 -> 9"),
        ({"again": counts(launches=3, operators=9)}, "operators in graphs 30 -> 9"),
    ],
)
def test_fewer_recompilations_of_less_are_no_gain(worse: dict[str, Any], named: str) -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 1, 1), setting("marked", 0, 0, 0, **worse)))
    assert f"With {MARKS}: recompilations 2 -> 0, but {named}." in told.conclusions
    assert "torch._dynamo.maybe_mark_dynamic" not in text(told)
    other = of("vary-batch", varied(setting("automatic", 0, 1, 1), setting("dynamic", 0, 0, 0, **worse)))
    assert f"With `dynamic=True`: recompilations 2 -> 0, but {named}." in text(other)


def test_no_marks_are_needed() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 0, 0), setting("marked", 0, 0, 0)))
    assert told.conclusions == ("Nothing is compiled again for other batch sizes: there is no need to mark anything.",)


def test_nothing_ran_compiled() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 0, 0, again=counts(launches=0, operators=0))))
    assert told.conclusions == ("No compiled graph ran: this says nothing.",)


def test_nothing_to_mark() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 1, 0), setting("dynamic", 0, 0, 0), marks=False))
    assert "there is nothing to mark before the call" in text(told)
    assert "With `dynamic=True`: recompilations 1 -> 0." in told.conclusions


def test_a_size_of_one() -> None:
    settings = setting("automatic", 0, 1, 1), setting("marked", 0, 0, 1)
    told = of("vary-batch", varied(*settings, setting("unbacked", 0, 0, 0)))
    assert f"With {MARKS.replace('maybe_mark_dynamic', 'mark_unbacked')}: recompilations 1 -> 0." in told.conclusions
    assert "In code: `torch._dynamo.decorators.mark_unbacked(ids, 0)`, " in text(told)
    no_gain = of("vary-batch", varied(*settings, setting("unbacked", 0, 0, 1)))
    assert "`mark_unbacked` on dimension 0 of `ids`" in no_gain.conclusions[-1]
    assert no_gain.conclusions[-1].endswith("recompilations 1 -> 1.")
    failed = of("vary-batch", varied(*settings, failing("unbacked")))
    assert failed.conclusions[-1].endswith("it does not run: UserError: why (m.py:4).")
    assert "mark_unbacked(ids" not in text(no_gain) + text(failed)


def test_settings_that_fail() -> None:
    told = of("vary-batch", varied(setting("automatic", 0, 1, 1), failing("marked"), failing("dynamic")))
    assert f"With {MARKS} it does not run: UserError: why (m.py:4)." in told.conclusions
    assert "With `dynamic=True` it does not run: UserError: why (m.py:4)." in told.conclusions
    assert ("maybe_mark_dynamic", "compile-error", "-", "-", "-", "-", "-") in told.rows
    alone = of("vary-batch", varied(failing("automatic")))
    assert alone.conclusions == ("As it is, it does not run: UserError: why (m.py:4).",)


def test_calls_of_the_case_are_told_with_their_sizes() -> None:
    figures = {**varied(setting("automatic", 0, 0, 0)), "chosen": False}
    figures["steps"] = [{"call": 3, "sizes": list(range(8, 14))}, {"call": 1, "sizes": [8]}, {"call": 2, "sizes": []}]
    labels = [row[1] for row in of("vary-batch", figures).rows]
    assert labels == ["call 3 (8, 9, ..., 13)", "call 1 (8)", "call 2", "all again"]


def test_guards_are_told_in_words() -> None:
    guards = (
        "___check_type_id(L['images'], 94061234567890), type=<class 'list'>",
        "___check_type_id(L['images'], 94061234567891), type=<class 'tuple'>",
        "tensor 'x' size mismatch at index 0. expected 2, actual 1",
        "tensor 'x' size mismatch at index 1. expected 2, actual 1",
        "len(L['images']) == 2  # for image in images",
        "L['n'] == 2",
    )
    marked = setting("marked", 0, 0, 1)
    marked["reasons"] = [{"function": "forward", "where": "m.py:3", "guard": guard} for guard in guards]
    told = text(of("vary-batch", varied(setting("automatic", 0, 1, 1), marked)))
    assert (
        "still compiled again: forward (m.py:3): the type of `images`;"
        " forward (m.py:3): the sizes of `x` (dims 0, 1);"
        " forward (m.py:3): the number of items in `images`; and 1 more." in told
    )
    assert "___check" not in told


def test_calls_that_differ_in_something_else_too() -> None:
    figures = {**varied(setting("automatic", 0, 1, 1), setting("marked", 0, 1, 1)), "chosen": False}
    assert "counts are of that too" not in text(of("vary-batch", {**figures, "also": []}))
    also = [{"path": "ids", "dims": [1]}, {"path": "images[0]", "dims": []}, {"path": "images[1]", "dims": []}]
    told = of("vary-batch", {**figures, "also": also})
    assert told.conclusions[1] == (
        "The calls also differ in dimension 1 of `ids` and do not all have `images[*]`: the counts are of that too."
        " Let `calls()` take a parameter `batch`, a whole number with a default, to see the batch size by itself."
    )
    (line,) = [line for line in of("vary-batch", {**figures, "also": also[1:2]}).conclusions if "of that too" in line]
    assert line.startswith("The calls do not all have `images[*]`: ")


def test_dimensions_in_words() -> None:
    marks = [{"path": f"images[{n}]", "dims": [1]} for n in range(3)]
    assert dimensions(marks) == "dimension 1 of `images[*]`"


# latency, ablation


def option(name: str, median: float, first: float = 2.0, launches: int = 3, **more: Any) -> dict[str, Any]:
    told = {"name": name, "status": "ok", "message": "", "first_seconds": first, "difference": 1e-6}
    return {**told, "first": counts(), "settled": counts(launches=launches), "warm": told_warm(median), **more}


def settings(*rows: dict[str, Any], told: str = "mode default") -> dict[str, Any]:
    return {"told": told, "settings": list(rows)}


TURNED = option("max_autotune=True", 5, given='torch.compile(model, options={"max_autotune": True})')


def test_how_much_quicker_blocks_compile() -> None:
    told = of(
        "latency", settings(option("whole model", 10, 27.8), option("block by block", 10, 6.17), told="3 x Block")
    )
    assert told.conclusions == (
        "block by block: 1.00x as fast as whole model, which is noise; its first pass takes 6.17 s instead of 27.8.",
    )
    assert told.message == "3 x Block"
    assert told.rows[1][:4] == ("block by block", "6.17", "10 [9.9-10.1]", "1.00x (noise)")


def test_blocks_that_are_never_called() -> None:
    told = of("latency", settings(option("whole model", 10), option("block by block", 10, launches=0)))
    assert told.conclusions == ("block by block: no compiled graph ran.",)


def test_no_blocks() -> None:
    told = of("latency", settings(told=""))
    assert (told.message, told.rows) == ("the model has no list of two or more modules of one class", ())


def test_one_of_the_two_fails() -> None:
    told = of("latency", settings(option("whole model", 10), failing("block by block")))
    assert told.conclusions == ("block by block: UserError: why (m.py:4).",)


def test_an_option_that_is_faster_beyond_noise() -> None:
    told = of("ablation", settings(option("default", 10), TURNED, option("default", 10.2)))
    assert told.conclusions == (
        "max_autotune=True: 2.02x as fast as default; its first pass takes 2 s instead of 2.",
        'In code: `torch.compile(model, options={"max_autotune": True})`',
    )
    assert [row[0] for row in told.rows] == ["default", "max_autotune=True", "default"]


def test_within_noise_of_one_of_the_defaults_is_none() -> None:
    told = of("ablation", settings(option("default", 10), TURNED, option("default", 5.1)))
    assert told.conclusions == (
        "max_autotune=True: 1.51x as fast as default, which is noise; its first pass takes 2 s instead of 2.",
        "The machine drifts: the default took 10 and 5.1 ms, at first and at last.",
    )
    assert told.rows[1][3] == "1.51x (noise)"


def test_of_several_options_only_what_differs_is_told() -> None:
    slower = option("epilogue_fusion=False", 30)
    told = of("ablation", settings(option("default", 10), option("max_autotune=True", 10), slower))
    assert told.conclusions == (
        "None of them is faster than default beyond noise.",
        "epilogue_fusion=False: 0.33x as fast as default; its first pass takes 2 s instead of 2.",
    )


def test_options_without_figures() -> None:
    left = {"name": "max_autotune=True", "status": "left out", "message": "there was no time left for it"}
    told = of("ablation", settings(option("default", 10), left))
    assert told.conclusions == ("max_autotune=True: there was no time left for it.",)
    alone = of("ablation", settings(failing("default"), TURNED))
    assert alone.conclusions == ("default: UserError: why (m.py:4).",)
