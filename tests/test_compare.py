"""From results.json to a verdict: each rule of the judgement both ways, on made-up results of one toy case."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from patcher.harness.compare import Judgement, Verdict, apart, judge, speedup, within_noise
from patcher.harness.measured import Comparison, Distance, Measurement, ResultsError, Warm, from_json

Json = dict[str, Any]

FLOAT32 = 2.0**-23
VARIANTS = {
    "oe": ("original", "eager"),
    "pe": ("patched", "eager"),
    "oc": ("original", "compiled"),
    "pc": ("patched", "compiled"),
}
FIGURES: Json = {
    "weights": "w",
    "repeatable": None,
    "draws_random": False,
    "calls": [{"seconds": 0.5, "breaks": 0, "recompiles": 0, "graphs": 1, "launches": 1, "operators": 40}],
    "settled": [{"seconds": 0.1, "launches": 1, "operators": 40}],
    "counts": {"breaks": 0, "recompiles": 0, "graphs": 0, "limit_hits": 0, "dropped_frames": 0, "cudagraph_skips": 0},
    "launches": 0,
    "operators": 0,
    "breaks": [],
    "recompiles": [],
    "limit_hits": [],
    "dropped_frames": [],
    "cudagraph_skips": [],
    "cold_seconds": 0.5,
    "warm": {"median_ms": 10.0, "low_ms": 9.0, "high_ms": 11.0, "min_ms": 8.5, "passes": 20},
    "memory": {"bytes": 100_000_000, "kind": "rss"},
    "loaded": ["m.py"],
    "places": None,
}
DEFAULTS: dict[str, Json] = {
    "oe": {"repeatable": True},
    "pe": {"places": {"executed": 2, "of": 2, "missed": []}},
    "oc": {"counts": {"breaks": 4, "recompiles": 3, "graphs": 5}, "launches": 5, "operators": 100},
    "pc": {"counts": {"breaks": 0, "recompiles": 1, "graphs": 1}, "launches": 1, "operators": 90},
}
CLOSE: Json = {"bitwise": False, "mae": 1e-7, "max": 1e-6, "relative": 1e-6, "worst": "call 1 output"}
EQUAL: Json = {"bitwise": True, "mae": 0.0, "max": 0.0, "relative": 0.0, "worst": ""}


def variant(short: str, mode: str | None = None, **given: Any) -> Json:
    """A measurement; ``short``: "pe" is patched eager. ``counts`` and ``warm`` are added to the usual ones."""
    tree, kind = VARIANTS[short]
    made: Json = {"tree": tree, "kind": kind, "mode": mode, "status": "ok", "message": "", "tail": [], "seconds": 9.5}
    if given.get("status", "ok") != "ok":
        return {**made, **given}
    made.update(copy.deepcopy(FIGURES))
    for source in (DEFAULTS[short], given):
        for key, value in source.items():
            made[key] = {**made[key], **value} if key in ("counts", "warm") and value else value
    return made


def comparison(short: str, mode: str | None = None, **given: Any) -> Json:
    """A variant against original eager: eager the same bits, compiled a little off."""
    tree, kind = VARIANTS[short]
    usual = EQUAL if kind == "eager" else CLOSE
    more = {"epsilon": FLOAT32, "differences": [], "gradients": None, "state": None, "float64": 2e-7}
    return {"tree": tree, "kind": kind, "mode": mode, **usual, **more, **given}


def toy(name: str = "toy", modes: tuple[str, ...] = ("default",), **given: Any) -> Json:
    """A case; ``pe={...}``: of that variant; ``vs_pe={...}``: of its comparison (None: there is none)."""
    eager = {"tree": "original", "kind": "eager", "mode": None, "float64": 1e-7}
    variants, comparisons = [], [eager]
    for short, mode in [("oe", None), ("pe", None), *((short, mode) for mode in modes for short in ("oc", "pc"))]:
        told = given.get(short, {})
        variants += [variant(short, mode, **told)]
        versus = given.get(f"vs_{short}", {})
        if short != "oe" and versus is not None and told.get("status", "ok") == "ok":
            comparisons += [comparison(short, mode, **versus)]
    case = {"name": name, "tolerance": 1e-3, "train": False, "device": "cpu", "dtype": None, "compare_error": None}
    plain = {key: value for key, value in given.items() if key in case}
    return {**case, "variants": variants, "comparisons": comparisons, **plain}


def document(*cases: Json, **plan: Any) -> Json:
    """A results.json; ``plan``: what its plan says otherwise."""
    usual: Json = {
        "tool": "fix-compile 1.2.3",
        "command": ["fix-compile", "--test", "--case", "toy cases.py", "m.py"],
        "tree": {"commit": "0123456789abcdef", "dirty": True, "digest": "fedcba9876543210"},
        "modes": ["default"],
        "backend": "inductor",
        "promise": "bitwise",
        "quick": False,
        "overlay": [{"shown": "m.py", "before": "aa", "after": "bb", "changed": [[3, 5], [9, 9]]}],
    }
    return {
        "schema": 1,
        "plan": {**usual, **plan},
        "environment": {
            "torch": "2.13.0+cpu",
            "python": "3.11.7",
            "device": "cpu",
            "cuda": None,
            "platform": "Linux x86_64",
            "threads": 2,
        },
        "started": "2026-11-21T14:00:00+00:00",
        "seconds": 61.2,
        "cases": list(cases),
    }


PLAN = ("promise", "overlay")


def judged(tolerance: float | None = None, **given: Any) -> Verdict:
    """The verdict on one toy case in the default mode."""
    plan = {key: given.pop(key) for key in PLAN if key in given}
    (verdict,) = judge(from_json(document(toy(**given), **plan)), tolerance).verdicts
    return verdict


def failing(status: str, message: str = "") -> Json:
    return {"status": status, "message": message, "tail": ["last line"]}


def off(**figures: Any) -> Json:
    return {**CLOSE, **figures}


def test_equivalent() -> None:
    assert judged() == Verdict("toy", "default", "equivalent")


def test_fewer_operators_are_no_loss_where_each_call_is_one_graph() -> None:
    assert judged(pc={"operators": 49}).status == "equivalent"
    twice = [{"seconds": 0.1, "launches": 2, "operators": 40}]
    assert judged(pc={"operators": 49, "settled": twice}).status == "worse"


NAN = "nan"
NO_FLOATS: Json = {"bitwise": False, "mae": None, "max": None, "relative": None}
SLOW: Json = {"warm": {"median_ms": 14.0, "low_ms": 12.0, "high_ms": 15.0}}
OFF = off(mae=0.5, max=2.0, relative=0.3)
LOOSE: Json = {"promise": "tolerance"}
NOISY: Json = {"oe": {"repeatable": False}}

NOT_EQUIVALENT: list[tuple[str, Json, str, str]] = [
    # the case is wrong
    ("invalid: case", {"oe": failing("case-error", "no build()")}, "invalid", "the case is wrong, not the patch"),
    ("invalid: crash", {"oe": failing("error", "TypeError: x")}, "invalid", "crashed: TypeError: x"),
    ("invalid: hang", {"oe": failing("timeout")}, "invalid", "original eager: hung (time limit) after"),
    ("invalid: compare", {"compare_error": "disk full"}, "invalid", "its outputs cannot be compared: disk full"),
    ("invalid: compare, failed", {"compare_error": "x", "pc": failing("error")}, "invalid", "cannot be compared: x"),
    ("invalid: no comparison of eager", {"vs_pe": None}, "invalid", "no comparison of patched eager"),
    ("invalid: no comparison of compiled", {"vs_pc": None}, "invalid", "no comparison of patched compiled (default)"),
    # the patch fails
    ("failed: eager", {"pe": failing("error", "boom")}, "failed", "patched eager: crashed: boom"),
    ("failed: hang", {"pc": failing("timeout", "did not end")}, "failed", "hung (time limit): did not end"),
    ("failed: memory", {"pc": failing("out-of-memory")}, "failed", "patched compiled (default): ran out of memory"),
    ("failed: compiler", {"pc": failing("compile-error")}, "failed", "patched compiled (default): does not compile"),
    ("failed: exit", {"pc": failing("exited")}, "failed", "patched compiled (default): ended without a result"),
    ("failed: skipped", {"pc": failing("skipped")}, "failed", "patched compiled (default): was not run"),
    ("failed: before different", {"pe": failing("error"), "vs_pc": OFF}, "failed", "patched eager: crashed"),
    ("failed: eager, neither compiles", {"pe": failing("error"), "oc": failing("error"), "pc": failing("error")},
     "failed", "patched eager: crashed"),
    ("invalid: neither compiles", {"oc": failing("error"), "pc": failing("timeout")}, "invalid",
     "no compiled code ran, so nothing is proven: original"),
    # nothing of the patch ran
    ("unproven: no import", {"pe": {"loaded": []}, "pc": {"loaded": []}}, "unproven", "eager has imported no patched"),
    ("unproven: no import, compiled", {"pc": {"loaded": []}}, "unproven", "patched compiled (default) has imported no"),
    ("unproven: places", {"pe": {"places": {"executed": 0, "of": 2, "missed": ["m.py:3", "m.py:9"]}}}, "unproven",
     "none of the 2 changed places ran: m.py:3, m.py:9"),
    ("unproven: not traced", {
        "pe": {"places": {"executed": 0, "of": 2, "missed": ["m.py:3", "m.py:9"]}},
        "pc": {"places": {"executed": 0, "of": 2, "missed": ["m.py:3", "m.py:9"]}},
    }, "unproven", "none of the 2 changed places ran: m.py:3, m.py:9"),
    ("unproven: its file is not there", {
        "pe": {"places": {"executed": 0, "of": 1, "missed": ["m.py:3"]}},
        "pc": {"loaded": ["n.py"], "places": {"executed": 1, "of": 1, "missed": []}},
    }, "unproven", "none of the 1 changed places ran: m.py:3"),
    ("unproven: no patch", {"overlay": []}, "unproven", "no file is patched"),
    # eager, equal bits
    ("eager: difference", {"vs_pe": {"differences": ["call 1 output: dtype"]}}, "different", "call 1 output: dtype"),
    ("eager: bits", {"vs_pe": CLOSE}, "different", "not bitwise equal (MAE 1e-07, max 1e-06, relative 1e-06, worst at"),
    ("eager: bits without floats", {"vs_pe": NO_FLOATS},
     "different", "patched eager: outputs not bitwise equal"),
    # eager, within the tolerance
    ("eager: MAE", {"vs_pe": off(mae=1e-3), **LOOSE}, "different", "eager: outputs beyond the tolerance of 0.001"),
    ("eager: relative", {"vs_pe": off(relative=2e-3), **LOOSE}, "different", "beyond the relative limit of 0.001"),
    ("eager: NaN", {"vs_pe": off(mae=NAN), **LOOSE}, "different", "patched eager: outputs: NaN"),
    ("eager: infinite", {"vs_pe": off(mae="inf"), **LOOSE}, "different", "MAE inf"),
    ("eager: noisy but far", {**NOISY, "vs_pe": OFF}, "different", "patched eager: outputs beyond the tolerance"),
    ("eager: noisy and another dtype", {**NOISY, "vs_pe": {"differences": ["dtype"]}}, "different", "dtype"),
    ("eager: unknown", {"vs_pe": NO_FLOATS, **LOOSE}, "different",
     "patched eager: outputs not equal"),
    # eager, what is trained
    ("eager: gradients", {"vs_pe": {"gradients": off(relative=17 * FLOAT32)}}, "different", "eager: gradients beyond"),
    ("eager: state", {"vs_pe": {"state": off(relative=17 * FLOAT32)}}, "different", "eager: state beyond"),
    ("eager: gradients NaN", {"vs_pe": {"gradients": off(max=NAN)}}, "different", "eager: gradients: NaN"),
    ("eager: state NaN, noisy", {"vs_pe": {"state": off(relative=NAN)}, **NOISY}, "different", "eager: state: NaN"),
    ("eager: gradients, loose", {"vs_pe": {"gradients": off(relative=0.02)}, **LOOSE}, "different", "limit of 0.01"),
    # compiled
    ("compiled: difference", {"vs_pc": {"differences": ["shape"]}}, "different", "patched compiled (default): shape"),
    ("compiled: one difference of two", {"vs_pc": {"differences": ["a", "b"]}, "vs_oc": {"differences": ["a"]}},
     "different", "patched compiled (default): b"),
    ("compiled: MAE", {"vs_pc": off(mae=2e-3)}, "different", "outputs beyond the tolerance of 0.001 (MAE 0.002"),
    ("compiled: MAE, weak excuse", {"vs_pc": off(mae=3e-3), "vs_oc": off(mae=1e-3)}, "different", "the tolerance of"),
    ("compiled: MAE, NaN is no excuse", {"vs_pc": off(mae=3e-3), "vs_oc": off(mae=NAN)}, "different", "tolerance of"),
    ("compiled: relative", {"vs_pc": off(relative=2e-3)}, "different", "beyond the relative limit of 0.001"),
    ("compiled: relative, weak excuse", {"vs_pc": off(relative=9e-3), "vs_oc": off(relative=2e-3)}, "different",
     "beyond the relative limit"),
    ("compiled: an excuse without floats", {"vs_pc": OFF, "vs_oc": NO_FLOATS}, "different", "beyond the tolerance"),
    ("compiled: relative in bfloat16", {"vs_pc": off(relative=0.2, epsilon=2.0**-7)}, "different", "limit of 0.125"),
    ("compiled: gradients in float16", {"vs_pc": {"gradients": off(relative=0.3), "epsilon": 2.0**-10}}, "different",
     "relative limit of 0.25"),
    ("compiled: a gradient that is gone, in bfloat16", {"vs_pc": {"gradients": off(relative=1.0), "epsilon": 2.0**-7}},
     "different", "relative limit of 0.5"),
    ("compiled: NaN", {"vs_pc": off(max=NAN)}, "different", "patched compiled (default): outputs: NaN"),
    ("compiled: gradients", {"vs_pc": {"gradients": off(relative=0.02)}}, "different", "gradients beyond the relative"),
    ("compiled: state", {"vs_pc": {"state": off(relative=0.02)}}, "different", "beyond the relative limit of 0.01"),
    ("compiled: state NaN", {"vs_pc": {"state": off(mae=NAN)}}, "different", "state: NaN"),
    ("compiled: no excuse", {"oc": failing("error"), "vs_pc": off(mae=2e-3)}, "different", "beyond the"),
    ("compiled: unknown", {"vs_pc": NO_FLOATS}, "different",
     "patched compiled (default): outputs not equal"),
    # compiles worse
    ("worse: limit hits", {"pc": {"counts": {"limit_hits": 1}}}, "worse", "recompile-limit hits 0 -> 1"),
    ("worse: dropped frames", {"pc": {"counts": {"dropped_frames": 2}}}, "worse", "dropped frames 0 -> 2"),
    ("worse: launches", {"pc": {"launches": 0, "operators": 95}}, "worse", "graph launches 5 -> 0: nothing"),
    ("worse: operators", {"pc": {"operators": 49, "counts": {"breaks": 1}}}, "worse",
     "captured operators 100 -> 49: less is compiled"),
    ("worse: few operators", {"oc": {"operators": 19}, "pc": {"operators": 9, "counts": {"breaks": 1}}}, "worse",
     "operators 19 -> 9"),
    ("worse: breaks", {"pc": {"counts": {"breaks": 6, "recompiles": 3}, "launches": 5}}, "worse",
     "breaks 4 -> 6, and nothing got less"),
    ("worse: again", {"pc": {"counts": {"breaks": 4, "recompiles": 5}, "launches": 6}}, "worse", "recompiles 3 -> 5"),
    ("worse: skips", {"pc": {"counts": {"breaks": 4, "recompiles": 3, "cudagraph_skips": 1}, "launches": 5}}, "worse",
     "CUDA-graph skips 0 -> 1"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "status", "reason"), [pytest.param(*row[1:], id=row[0]) for row in NOT_EQUIVALENT])
def test_not_equivalent(given: Json, status: str, reason: str) -> None:
    verdict = judged(**given)
    assert verdict.status == status
    assert any(reason in told for told in verdict.reasons), verdict
    assert all("\n" not in told for told in (*verdict.reasons, *verdict.notes))


EQUIVALENT: list[tuple[str, Json, str]] = [
    ("a frame without operators", {"pc": {"counts": {"dropped_frames": 2}, "operators": 100}},
     "dropped frames 0 -> 2, with no operator less in graphs"),
    ("compiles now", {"oc": failing("compile-error", "no")}, "compiles now (original compiled (default):"),
    ("original not compiled", {"oc": failing("skipped")}, "original compiled (default): was not run"),
    ("missed places", {"pe": {"places": {"executed": 1, "of": 2, "missed": ["m.py:9"]}}},
     "1 of 2 changed places did not run: m.py:9"),
    ("traced places", {
        "pe": {"places": {"executed": 0, "of": 2, "missed": ["m.py:3", "m.py:9"]}},
        "pc": {"places": {"executed": 1, "of": 2, "missed": ["m.py:9"]}},
    }, "1 of 2 changed places did not run: m.py:9"),
    ("executed and traced", {
        "pe": {"places": {"executed": 1, "of": 2, "missed": ["m.py:3"]}},
        "pc": {"places": {"executed": 1, "of": 2, "missed": ["m.py:9"]}},
    }, ""),
    ("no places", {"pe": {"places": {"executed": 0, "of": 0, "missed": []}}}, ""),
    ("files not imported", {"overlay": [{"shown": name, "before": "", "after": ""} for name in ("m.py", "n.py")]},
     "1 of 2 patched files were not imported: n.py"),
    ("eager: repeatable is not known", {"oe": {"repeatable": None}}, ""),
    ("eager: noisy", {**NOISY, "vs_pe": CLOSE}, "the original does not repeat its own results"),
    ("eager: noisy gradients", {**NOISY, "vs_pe": {**CLOSE, "gradients": off(relative=1e-3)}}, "does not repeat"),
    ("eager: tolerance", {"vs_pe": off(mae=9e-4, relative=9e-4), **LOOSE}, ""),
    ("eager: relative in bfloat16", {"vs_pe": off(relative=0.1, epsilon=2.0**-7), **LOOSE}, ""),
    ("eager: gradients", {"vs_pe": {"gradients": off(relative=16 * FLOAT32), "state": off(relative=1e-7)}}, ""),
    ("eager: state without outputs in floats", {"vs_pe": {"state": off(relative=1e-6), "epsilon": 0.0}}, ""),
    ("eager: gradients, tolerance", {"vs_pe": {"gradients": off(relative=9e-3)}, **LOOSE}, ""),
    ("compiled: shared difference", {"vs_pc": {"differences": ["a"]}, "vs_oc": {"differences": ["a", "b"]}},
     "compiling the original alone shows this too: a"),
    ("compiled: shared difference without a distance",
     {"vs_pc": {"differences": ["a"], **NO_FLOATS},
      "vs_oc": {"differences": ["a"]}}, "shows this too: a"),
    ("compiled: MAE excused", {"vs_pc": off(mae=2e-3), "vs_oc": off(mae=1e-3)}, "compiling alone differs by MAE 0.001"),
    ("compiled: relative excused", {"vs_pc": off(relative=8e-3), "vs_oc": off(relative=2e-3)}, "by relative 0.002"),
    ("compiled: NaN excused", {"vs_pc": off(mae=NAN), "vs_oc": off(mae=NAN)}, "compiling alone differs by NaN"),
    ("compiled: gradients excused",
     {"vs_pc": {"gradients": off(relative=0.04)}, "vs_oc": {"gradients": off(relative=0.02)}},
     "gradients far away (MAE"),
    ("compiled: gradients", {"vs_pc": {"gradients": off(mae=5.0, relative=9e-3), "state": EQUAL}}, ""),
    ("fewer operators", {"pc": {"operators": 50}}, ""),
    ("few operators", {"oc": {"operators": 10}, "pc": {"operators": 1}}, ""),
    ("nothing was launched before", {"oc": {"launches": 0, "operators": 0}, "pc": {"launches": 0, "operators": 0}}, ""),
    ("more breaks, fewer recompiles", {"pc": {"counts": {"breaks": 9, "recompiles": 2}, "launches": 9}}, ""),
    ("more breaks, fewer launches", {"pc": {"counts": {"breaks": 9, "recompiles": 9}}}, ""),
    ("more breaks, fewer frames dropped",
     {"oc": {"counts": {"dropped_frames": 1}}, "pc": {"counts": {"breaks": 9, "recompiles": 9}, "launches": 9}}, ""),
    ("more breaks, fewer limits hit",
     {"oc": {"counts": {"limit_hits": 1}}, "pc": {"counts": {"breaks": 9, "recompiles": 9}, "launches": 9}}, ""),
    ("fewer breaks, more recompiles", {"pc": {"counts": {"breaks": 3, "recompiles": 9}, "launches": 5}}, ""),
    ("no gain", {"pc": {"counts": {"breaks": 4, "recompiles": 3}, "launches": 5}}, ""),
    ("slower", {"pc": SLOW},
     "compiled (default) is slower: 10 -> 14 ms"),
    ("slower in eager", {"pe": SLOW}, "eager is slower: 10 -> 14"),
    ("slower within noise", {"pc": {"warm": {"median_ms": 14.0, "low_ms": 10.5, "high_ms": 15.0}}}, ""),
    ("slower, ranges that touch", {"pc": {"warm": {"median_ms": 14.0, "low_ms": 11.0, "high_ms": 15.0}}}, ""),
    ("not timed", {"pc": {"warm": None}}, ""),
    ("not timed before", {"oc": {"warm": None}}, ""),
    ("no floats", {"vs_pe": {**NO_FLOATS, "bitwise": True}, "vs_pc": {**NO_FLOATS, "bitwise": True}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("given", "note"), [pytest.param(*row[1:], id=row[0]) for row in EQUIVALENT])
def test_equivalent_with_notes(given: Json, note: str) -> None:
    verdict = judged(**given)
    assert (verdict.status, verdict.reasons) == ("equivalent", ())
    assert any(note in told for told in verdict.notes) if note else verdict.notes == ()


def test_what_was_not_run_has_no_fault() -> None:
    assert judged(oc=failing("skipped")).notes == ("original compiled (default): was not run",)
    crashed = judged(pe=failing("error"), pc=failing("skipped"))
    assert (crashed.reasons, crashed.notes) == (("patched eager: crashed",), ())


def test_what_counts_most_comes_first() -> None:
    unproven = {"places": {"executed": 0, "of": 1, "missed": ["m.py:3"]}}
    verdict = judged(pe=unproven, vs_pe=CLOSE, pc={"counts": {"limit_hits": 1}})
    assert verdict.status == "different"
    assert ["bitwise" in verdict.reasons[0], "changed places" in verdict.reasons[1]] == [True, True]
    assert len(verdict.reasons) == 2  # how it compiles is not looked at
    assert judged(pe=unproven, pc={"counts": {"limit_hits": 1}}).status == "unproven"
    broken = judged(compare_error="x", pc=failing("error"))
    assert broken.notes == ("patched compiled (default): crashed",)


def test_results_without_a_number_prove_little() -> None:
    verdict = judged(vs_pe={**EQUAL, "finite": 0, "gradients": {**EQUAL, "finite": 3}})
    assert verdict.status == "equivalent"
    assert verdict.notes == ("all floating outputs are NaN or infinite: that they are equal proves little",)


def test_a_way_to_compile_that_fails_is_the_cases_fault() -> None:
    verdict = judged(oc=failing("case-error"), pc=failing("case-error"))
    assert verdict.status == "invalid"
    assert verdict.reasons[0].startswith("the case is wrong, not the patch: original compiled (default)")


def test_nothing_is_said_of_the_patch_when_the_original_does_not_run() -> None:
    verdict = judged(oe=failing("case-error"), pe=failing("skipped"), oc=failing("skipped"), pc=failing("skipped"))
    assert (verdict.status, len(verdict.reasons), verdict.notes) == ("invalid", 1, ())


def test_long_lists_are_cut() -> None:
    verdict = judged(vs_pe={"differences": [f"call {n}" for n in range(9)]})
    assert len(verdict.reasons) == 6
    assert verdict.reasons[-1] == "patched eager: ... and 4 more differences"
    missed = [f"m.py:{n}" for n in range(8)]
    (note,) = judged(pe={"places": {"executed": 1, "of": 9, "missed": missed}}).notes
    assert note.endswith("m.py:4, ... and 3 more")
    (note,) = judged(pe={"places": {"executed": 1, "of": 6, "missed": missed[:5]}}).notes
    assert note.endswith("m.py:3, m.py:4")
    assert len(judged(vs_pe={"differences": ["a", "b", "c", "d", "e"]}).reasons) == 5


def test_tolerance() -> None:
    far, near = {"vs_pc": off(mae=2e-3)}, {"vs_pc": off(mae=9e-4)}
    assert judged(**far).status == "different"
    assert judged(0.01, **far).status == "equivalent"
    assert judged(1e-4, **near).status == "different"
    assert judged(1e-4, **near).reasons[0].startswith("patched compiled (default): outputs beyond")
    assert judged(0.0, vs_pc=EQUAL).status == "equivalent"
    assert judged(0.0, vs_pc=off(mae=0.0, max=0.0, relative=0.0)).status == "equivalent"  # a zero of the other sign
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="a tolerance is a number from 0"):
            judged(wrong)


def test_each_case_and_mode_has_a_verdict() -> None:
    modes = ("default", "reduce-overhead")
    broken = toy("b", modes)
    broken["variants"][-1] = {**variant("pc", "reduce-overhead", **failing("timeout"))}
    judgement = judge(from_json(document(toy("a", modes), broken, modes=list(modes))))
    told = [(verdict.case, verdict.mode, verdict.status) for verdict in judgement.verdicts]
    assert told == [
        ("a", "default", "equivalent"),
        ("a", "reduce-overhead", "equivalent"),
        ("b", "default", "equivalent"),
        ("b", "reduce-overhead", "failed"),
    ]
    assert not judgement.equivalent
    assert not judgement.invalid
    assert judge(from_json(document(toy("a", modes), modes=list(modes)))).equivalent
    wrong = judge(from_json(document(toy(oe=failing("case-error")))))
    assert wrong.invalid
    assert not wrong.equivalent


def test_nothing_measured_proves_nothing() -> None:
    assert not judge(from_json(document())).equivalent
    assert not Judgement(()).equivalent
    empty = toy()
    empty["variants"] = []
    (verdict,) = judge(from_json(document(empty))).verdicts
    assert (verdict.status, "was not run" in verdict.reasons[0]) == ("invalid", True)


def test_what_no_case_has_run() -> None:
    overlay = [{"shown": name, "before": "", "after": ""} for name in ("m.py", "n.py", "o.py")]
    first = toy("a", pe={"places": {"executed": 1, "of": 3, "missed": ["m.py:3", "m.py:9"]}})
    second = toy("b", pe={"places": {"executed": 1, "of": 2, "missed": ["m.py:9"]}})
    other = toy("c", pe={"loaded": ["n.py"], "places": {"executed": 1, "of": 2, "missed": ["n.py:4"]}})
    unknown = toy("d", pe={"places": None})
    judgement = judge(from_json(document(first, second, other, unknown, overlay=overlay)))
    assert judgement.unexercised == ("o.py", "m.py:9", "n.py:4")
    assert judge(from_json(document(toy()))).unexercised == ()


def warm(median: float, low: float, high: float) -> Warm:
    return Warm(median, low, high, low, 9)


def test_speedup() -> None:
    assert speedup(warm(10, 9, 11), warm(4, 3, 5)) == 2.5
    assert math.isnan(speedup(warm(10, 9, 11), warm(0, 0, 0)))
    assert math.isnan(speedup(warm(0, 0, 0), warm(10, 9, 11)))
    assert not within_noise(warm(10, 9, 11), warm(4, 3, 5))
    assert not within_noise(warm(4, 3, 5), warm(10, 9, 11))
    assert within_noise(warm(10, 9, 11), warm(8, 7, 9))
    assert within_noise(warm(10, 5, 15), warm(9, 8, 10))
    assert within_noise(warm(10, 9, 11), warm(8, 7, 9))
    assert within_noise(warm(8, 7, 9), warm(10, 9, 11))


# -- reading the document


def test_reading() -> None:
    told = document(
        toy(vs_pc=off(mae="nan", max="inf", relative=1), pc={"breaks": [{"where": "m.py:3", "reason": "if"}]})
    )
    told["new"] = told["plan"]["new"] = told["cases"][0]["new"] = told["cases"][0]["variants"][0]["new"] = 1
    results = from_json(told)
    assert results.document is told
    assert results.modes == ("default",)
    assert results.overlay[0].changed == ((3, 5), (9, 9))
    case = results.cases[0]
    compared, measured = (
        case.comparison("patched", "compiled", "default"),
        case.variant("patched", "compiled", "default"),
    )
    assert compared is not None
    assert measured.figures is not None
    assert math.isnan(compared.outputs.mae or 0)
    assert (compared.outputs.max, compared.outputs.relative, compared.float64) == (math.inf, 1.0, 2e-7)
    assert measured.figures.breaks[0].count == 1
    assert case.comparison("original", "eager") is not None
    assert case.comparison("patched", "compiled", "max-autotune") is None
    assert case.variant("original", "float64") == Measurement("original", "float64", None, "skipped")


def test_reading_what_a_failed_run_leaves() -> None:
    """Nothing came to its end, so that nobody could tell about the machine."""
    told = document(toy(oe=failing("timeout")), tree=None)
    told["environment"] = {}
    results = from_json(told)
    assert (results.environment.torch, results.tree.commit, results.cases[0].variants[0].figures) == ("", None, None)


def test_float64_needs_no_figures() -> None:
    case = toy()
    case["variants"].append({"tree": "original", "kind": "float64", "mode": None, "status": "ok", "message": ""})
    assert from_json(document(case)).cases[0].variant("original", "float64").figures is not None


CASE = ("cases", 0)
PATCHED_COMPILED = (*CASE, "variants", 3)
MISSING = object()
DAMAGED: list[tuple[tuple[str | int, ...], Any, str]] = [
    ((), [], "the results must be a table, not []"),
    (("schema",), 2, "the schema of the results is 2; this version reads schema 1"),
    (("schema",), True, "the schema of the results is True; this version reads schema 1"),
    (("schema",), MISSING, "the schema of the results is missing; this version reads schema 1"),
    (("plan",), MISSING, "plan.tool is missing"),
    (("plan",), [1], "plan must be a table, not [1]"),
    (("plan", "modes"), [], "plan.modes is empty"),
    (("plan", "modes"), [1], "plan.modes[0] must be a string, not 1"),
    (("plan", "promise"), "none", "plan.promise must be one of bitwise, tolerance, not 'none'"),
    (("plan", "quick"), 1, "plan.quick must be true or false, not 1"),
    (("plan", "overlay", 0, "changed"), [[1]], "plan.overlay[0].changed[0] must be a list of 2, not [1]"),
    (("seconds",), True, "seconds must be a number, not True"),
    (("seconds",), "long", "seconds must be a number, not 'long'"),
    (("seconds",), 10**400, "seconds must be a number, not 1000"),
    (("cases",), {}, "cases must be a list, not {}"),
    (("cases",), [1], "cases[0] must be a table, not 1"),
    ((*CASE, "name"), 3, "cases[0].name must be a string, not 3"),
    ((*CASE, "tolerance"), "nan", "cases[0].tolerance must be a number from 0, not nan"),
    ((*CASE, "tolerance"), -1, "cases[0].tolerance must be a number from 0, not -1.0"),
    ((*CASE, "comparisons", 2, "bitwise"), MISSING, "cases[0].comparisons[2].bitwise is missing"),
    ((*PATCHED_COMPILED, "status"), "fine", "cases[0].variants[3].status must be one of ok, case-error,"),
    ((*PATCHED_COMPILED, "mode"), None, "cases[0].variants[3].mode must be a string, not None"),
    ((*PATCHED_COMPILED, "counts"), MISSING, "cases[0].variants[3].counts is missing"),
    ((*PATCHED_COMPILED, "counts", "breaks"), -1, "cases[0].variants[3].counts.breaks must be a whole number from 0"),
    ((*PATCHED_COMPILED, "launches"), 1.5, "cases[0].variants[3].launches must be a whole number from 0, not 1.5"),
    ((*PATCHED_COMPILED, "loaded"), MISSING, "cases[0].variants[3].loaded is missing"),
    ((*PATCHED_COMPILED, "breaks"), [{"where": "m.py:3"}], "cases[0].variants[3].breaks[0].reason is missing"),
    ((*PATCHED_COMPILED, "warm", "low_ms"), None, "cases[0].variants[3].warm.low_ms must be a number, not None"),
    (
        (*PATCHED_COMPILED, "message"),
        {"a\n": "b" * 99},
        "cases[0].variants[3].message must be a string, not {'a\\n': 'bbb",
    ),
]


@pytest.mark.parametrize(("path", "value", "message"), DAMAGED)
def test_damaged_documents(path: tuple[str | int, ...], value: Any, message: str) -> None:
    told: Any = document(toy())
    if path:
        place = told
        for key in path[:-1]:
            place = place[key]
        if value is MISSING:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    else:
        told = value
    with pytest.raises(ResultsError) as error:
        from_json(told)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("epsilon", "relative", "same"),
    [
        pytest.param(2.0**-7, 0.012, True, id="bfloat16 rounds that off"),
        pytest.param(2.0**-7, 0.05, False, id="more than bfloat16 rounds off"),
        pytest.param(2.0**-23, 1e-7, False, id="float32 has the tolerance"),
    ],
)
def test_half_precision_is_judged_by_what_it_rounds_off(epsilon: float, relative: float, same: bool) -> None:
    outputs = Distance(bitwise=False, mae=0.0108, max=0.0625, relative=relative, finite=9)
    found = apart(Comparison("original", "compiled", "default", outputs, epsilon), 1e-3)
    assert (not found) is same


def _with_changed_inputs(**told: Any) -> Verdict:
    usual = {"status": "ok", "inputs": 70, "raising": [], "failing": [], "different": []}
    (verdict,) = judge(from_json(document({**toy(), "replayed": {**usual, **told}}))).verdicts
    return verdict


def test_changed_inputs_decide_too() -> None:
    found = _with_changed_inputs()
    assert (found.status, found.notes) == ("equivalent", ("results equal with 70 changed inputs",))
    found = _with_changed_inputs(different=["zeros: output: other values"])
    assert (found.status, found.reasons) == ("different", ("with changed inputs: zeros: output: other values",))
    found = _with_changed_inputs(failing=["autocast: raises TypeError"], raising=["a NaN"])
    assert found.status == "equivalent"
    told = "only the patched code fails with autocast: raises TypeError; only the original raises with a NaN"
    assert found.notes == (f"results equal with 70 changed inputs; {told}",)
    assert _with_changed_inputs(status="timeout").notes[-1] == "not compared with changed inputs: timeout"
    assert _with_changed_inputs(inputs=0).notes[-1] == "not compared with changed inputs"
