"""What the harness tells: tables, Markdown and JSON, of made-up results."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from patcher.harness.compare import Judgement, judge
from patcher.harness.measured import Results, from_json
from patcher.report.fitted import joined
from patcher.report.harness import harness_json
from patcher.report.markdown.measured import harness_markdown
from tests.test_compare import CLOSE, Json, document, failing, off, toy

MODES = ("default", "reduce-overhead")
QUICK_WARM: Json = {"warm": {"median_ms": 4.0, "low_ms": 3.9, "high_ms": 4.2}}
BREAKS: list[Json] = [
    {"where": "m.py:12", "reason": "a tensor `if` | <lambda>", "count": 12},
    {"where": "m.py:30", "reason": "a tensor `if` | <lambda>", "count": 3},
    {"where": "m.py:40", "reason": "print\nis  called", "count": 1},
]
GUARD = {"function": "forward", "where": "m.py:3", "guard": "size mismatch", "count": 13}


def read(*cases: Json, **plan: Any) -> tuple[Results, Judgement]:
    results = from_json(document(*cases, **plan))
    return results, judge(results)


def text(*cases: Json, **plan: Any) -> str:
    return harness_markdown(*read(*cases, **plan))


def cells(line: str) -> list[str]:
    """Those of a row of a table."""
    return [cell.strip().replace("\\", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows(told: str, start: str = "| case ") -> dict[str, dict[str, str]]:
    """A table of the page by its first column, then by its head; ``start``: how the head begins."""
    lines = told.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(start))
    found = {}
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[first + 2 :]):
        each = cells(line)
        found[each[0] or each[1]] = dict(zip(cells(lines[first]), each, strict=True))
    return found


def test_the_table_is_the_one_that_people_expect() -> None:
    told = text(toy(oe={"warm": {"median_ms": 123.4}}, pc=QUICK_WARM)).splitlines()
    assert told[0] == "# Original against patched: toy"
    head = "case,MAE diff,max diff,breaks,recompiles,eager ms,compiled before,compiled after,speedup,equivalent"
    assert cells(told[2]) == head.split(",")
    assert cells(told[4]) == ["toy", "1e-07", "1e-06", "4 -> 0", "3 -> 1", "123", "10.0", "4.00", "2.50x", "yes"]


@pytest.mark.parametrize(
    ("given", "column", "shown"),
    [
        ({"pc": {"warm": {"median_ms": 9.8}}}, "speedup", "1.02x (noise)"),
        ({"pc": {"warm": {"median_ms": 20.0, "low_ms": 19.0, "high_ms": 21.0}}}, "speedup", "0.50x"),
        ({"pc": {"warm": None}}, "speedup", "-"),
        ({"pc": {"warm": {"median_ms": 0.1234}}}, "compiled after", "0.123"),
        ({"pc": failing("timeout")}, "compiled after", "-"),
        ({"pc": failing("timeout")}, "speedup", "-"),
        ({"pc": failing("timeout")}, "breaks", "4 -> -"),
        ({"oc": failing("timeout")}, "breaks", "- -> 0"),
        ({"pc": failing("timeout"), "oc": failing("timeout")}, "recompiles", "-"),
        ({"pc": failing("timeout")}, "MAE diff", "0 (eager)"),
        ({"pc": failing("timeout"), "pe": failing("timeout")}, "max diff", "-"),
        ({"vs_pc": off(mae="nan")}, "MAE diff", "nan"),
        ({"vs_pc": off(mae=None, max=None)}, "MAE diff", "-"),
        ({}, "equivalent", "yes"),
        ({"vs_pe": CLOSE}, "equivalent", "NO"),
        ({"pc": {"counts": {"limit_hits": 1}}}, "equivalent", "NO (worse)"),
        ({"pc": failing("timeout")}, "equivalent", "NO (failed)"),
        ({"pe": {"loaded": []}}, "equivalent", "NO (unproven)"),
        (
            {"pe": {"warm": {"median_ms": 4.0, "low_ms": 3.9, "high_ms": 4.2}}, "pc": QUICK_WARM},
            "speedup",
            "2.50x (noise)",
        ),
        ({"pe": {"warm": {"median_ms": 8.0, "low_ms": 7.9, "high_ms": 8.2}}, "pc": QUICK_WARM}, "speedup", "2.50x"),
    ],
)
def test_cells_of_the_table(given: Json, column: str, shown: str) -> None:
    assert rows(text(toy(**given)))["toy"][column] == shown


def test_modes_are_told_apart() -> None:
    told = text(toy("toto", MODES), toy("vlm", MODES), modes=list(MODES))
    assert list(rows(told)) == ["toto [default]", "toto [reduce-overhead]", "vlm [default]", "vlm [reduce-overhead]"]


def test_details_have_a_row_for_each_variant() -> None:
    case = toy(
        oc={"counts": {"limit_hits": 2, "dropped_frames": 3, "cudagraph_skips": 4}, "cold_seconds": 61.25},
        pc={"memory": {"bytes": 1_234_567_890, "kind": "cuda"}},
        pe=failing("error"),
    )
    case["variants"].append({"tree": "original", "kind": "float64", "mode": None, "status": "ok"})
    told = rows(text(case).partition("## Variants")[2])
    assert list(told) == ["toy", "patched eager", "original compiled (default)", "patched compiled (default)"]
    assert set(list(told["patched eager"].values())[2:]) == {"-"}
    assert told["toy"]["variant"] == "original eager"
    assert (told["toy"]["graphs"], told["toy"]["MAE to float64"]) == ("-", "1e-07")
    compiled = told["original compiled (default)"]
    assert list(compiled.values())[2:] == [
        *("5", "5", "100", "2", "3", "4"),
        *("61.2", "10.0 [9.00-11.0]", "100 (rss)", "2e-07"),
    ]
    assert told["patched compiled (default)"]["memory MB"] == "1235 (cuda)"


def changes(told: str, case: str = "toy") -> list[str]:
    """The lines on what was removed and what remains of one case."""
    lines = list(joined(told.splitlines()))
    start = next(i for i, line in enumerate(lines) if line.startswith(f"- {case}: "))
    inside = itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :])
    return [line.strip().removeprefix("- ").replace("`", "") for line in inside]


def test_what_was_removed_and_what_remains() -> None:
    after = [{**BREAKS[0], "where": "m.py:28", "count": 1}, {"where": "n.py:1", "reason": "new one", "count": 2}]
    skips = [{"where": "", "reason": "mutated inputs", "count": 13}]
    case = toy(
        oc={"breaks": BREAKS, "recompiles": [GUARD], "limit_hits": [GUARD], "dropped_frames": [BREAKS[2]]},
        pc={"breaks": after, "recompiles": [{**GUARD, "count": 13}], "cudagraph_skips": skips},
    )
    assert changes(text(case)) == [
        "breaks 16 -> 3",
        "removed 12x m.py:12: a tensor if | <lambda>",
        "removed 1x m.py:40: print is called",
        "remains 3 -> 1x m.py:28: a tensor if | <lambda>",  # the nearest line with this reason
        "new 2x n.py:1: new one",
        "dropped frames 1 -> 0",
        "removed 1x m.py:40: print is called",
        "recompiles 13 -> 13",
        "remains 13x m.py:3: forward: size mismatch",
        "recompile limit hits 13 -> 0",
        "removed 13x m.py:3: forward: size mismatch",
        "CUDA-graph skips 0 -> 13",
        "new 13x mutated inputs",
    ]


def test_the_same_reason_in_another_file_is_another_break() -> None:
    other = [{**BREAKS[2], "where": "n.py:40"}]
    told = changes(text(toy(oc={"breaks": [BREAKS[2]]}, pc={"breaks": other})))
    assert [line.split()[0] for line in told] == ["breaks", "removed", "new"]


def test_one_tree_alone_has_no_before_and_after() -> None:
    told = changes(text(toy(oc=failing("error"), pc={"breaks": [BREAKS[2]]})))
    assert told[1:] == ["breaks - -> 1", "patched 1x m.py:40: print is called"]
    told = changes(text(toy(pc=failing("error"), oc={"breaks": [BREAKS[2]]})))
    assert told[1:] == ["breaks 1 -> -", "original 1x m.py:40: print is called"]


def test_a_mode_that_breaks_the_same_is_not_told_twice() -> None:
    told = text(toy(modes=MODES, oc={"breaks": BREAKS}), modes=list(MODES))
    assert changes(told, "toy [default]")[0] == "breaks 16 -> 0"
    assert told.count("print is called") == 1
    assert changes(told, "toy [reduce-overhead]") == ["breaks, recompiles and skips: the same as [default]"]


def test_long_lists_and_reasons_are_cut_where_it_is_brief() -> None:
    many = [{"where": f"m.py:{n}", "reason": f"reason {n} " + "x" * 200, "count": 1} for n in range(1, 12)]
    results, judgement = read(toy(oc={"breaks": many}))
    told = changes(harness_markdown(results, judgement, brief=True))
    assert told[0] == "breaks 11 -> 0"
    assert len(told) == 7
    assert told[-1] == "removed ... and 6 more"
    assert told[1].endswith("x" * 200)
    page = harness_markdown(results, judgement)
    assert "reason 11 " + "x" * 200 in page
    long = [{**many[0], "reason": "x" * 900}]
    assert changes(text(toy(oc={"breaks": long})))[1] == f"removed 1x m.py:1: {'x' * 297}..."


def test_verdicts_with_reasons_and_notes() -> None:
    told = text(
        toy("vlm", vs_pc=off(mae=2e-3, worst="call 3 output.logits"), oe={"repeatable": False}),
        toy("toto", pe={"places": {"executed": 1, "of": 2, "missed": ["m.py:9"]}}),
        overlay=[{"shown": name, "before": "", "after": ""} for name in ("m.py", "n.py")],
    )
    why = changes(told, "vlm")
    assert why[0].startswith("patched compiled (default): outputs beyond the tolerance of 0.001 (MAE 0.002, ")
    assert why[0].endswith("worst at call 3 output.logits)")
    assert why[1].startswith("or it is noise, for the original differs from itself")
    assert "- vlm: different\n" in told
    assert "- toto: equivalent\n  - Note: 1 of 2 patched files were not imported: n.py\n" in told
    assert "\n- patched, but run by no case: n.py\n" in told
    assert "run by no case" not in text(toy())


def test_failed_variants_show_their_last_lines() -> None:
    tail = ["Traceback:", "  File x", "\x1b[31mKilled"]
    broken = {"status": "exited", "message": "ended by itself", "tail": tail}
    case = toy(pc=broken)
    case["variants"].append(
        {"tree": "original", "kind": "float64", "mode": None, "status": "skipped", "message": "no", "tail": tail}
    )
    told = text(case)
    title = "\ntoy: patched compiled (default): ended without a result: ended by itself\n"
    assert f"{title}\n```text\nTraceback:\n  File x\n [31mKilled\n```\n" in told
    assert "\ntoy: original float64: was not run: no\n\n#" in told  # which is no failure
    assert "\x1b" not in told


def test_how_it_was_measured() -> None:
    told = text(toy()).partition("## How it was measured\n\n")[2]
    assert told.startswith(
        "- torch 2.13.0+cpu, Python 3.11.7\n- device cpu (Linux x86_64, 2 threads)\n"
        "- backend inductor, mode default\n- tree 0123456789ab with uncommitted changes, patch fedcba987654\n"
        "- fix-compile 1.2.3, 2026-11-21T14:00:00+00:00, 61 s\n\n"
        "```bash\nfix-compile --test --case 'toy cases.py' m.py\n```\n"
    )
    assert "speedup: compiled before / compiled after" in " ".join(told.split())
    assert "launches" in told
    told = text(toy(), tree={"commit": None, "dirty": None, "digest": "ab"}, quick=True)
    assert "mode default, quick\n- tree not in git, patch ab\n" in told


def test_nothing_that_ran_is_still_a_report() -> None:
    told = text(toy(oe=failing("timeout"), pe=failing("skipped"), oc=failing("skipped")))
    assert "- toy: invalid\n  - the case is wrong, not the patch: original eager: hung (time limit)" in told
    assert "|" not in told
    assert "|" not in text()


def test_markdown() -> None:
    told = text(toy("my|case", oc={"breaks": BREAKS}, pc=QUICK_WARM))
    lines = told.splitlines()
    assert lines[0] == "# Original against patched: my\\|case"
    assert list(rows(told)) == ["my|case"]
    assert "  - breaks 16 -> 0" in lines
    assert "    - removed 12x `m.py:12`: `a tensor `if` | <lambda>`" not in lines
    assert "    - removed 12x `m.py:12`: ``a tensor `if` | <lambda>``" in lines
    assert "    - removed 1x `m.py:40`: `print is called`" in lines
    assert "\n\n\n" not in told
    assert told.endswith("\n")
    assert not told.endswith("\n\n")
    assert "What did not run" not in told


def test_markdown_of_failures() -> None:
    told = text(toy("a", pc={**failing("error", "a < b"), "tail": ["  one", "two"]}), toy("b"))
    assert "- a: failed\n  - patched compiled (default): crashed: a \\< b\n" in told
    assert "\n- b: equivalent\n" in told
    ending = "\n## What did not run to its end\n\na: patched compiled (default): crashed: a \\< b\n\n"
    assert f"{ending}```text\n  one\ntwo\n```\n" in told


def test_json() -> None:
    source = document(toy(vs_pc=off(mae="nan"), pc={"cold_seconds": float("inf")}))
    source["something"] = "new"
    results = from_json(source)
    told = json.loads(harness_json(results, judge(results)), parse_constant=pytest.fail)
    assert (told["schema"], told["equivalent"], told["unexercised"]) == (1, False, [])
    assert told["results"]["something"] == "new"
    assert told["results"]["cases"][0]["variants"][3]["cold_seconds"] == "inf"
    (verdict,) = told["verdicts"]
    assert (verdict["case"], verdict["mode"], verdict["status"]) == ("toy", "default", "different")
    assert "outputs: NaN" in verdict["reasons"][0]
    assert json.loads(harness_json(*read(toy())))["equivalent"] is True
    assert repr(from_json(told["results"])) == repr(results)  # NaN is not equal to itself
