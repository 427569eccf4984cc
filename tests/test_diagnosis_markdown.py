"""The optimisation report as Markdown: what each section tells, and that nothing of others becomes markup."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args

import pytest

from patcher.diagnose.diagnosis import Advice, Cause, Diagnosis, Fate, Impact, Outcome, ProposedFix, Tried
from patcher.harness.measured import from_json
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.markdown import blocks
from patcher.report.markdown.causes import impact
from patcher.report.recommending import READING, SEVERITY, TITLES
from tests import diagnosis_samples as samples
from tests.test_compare import document, failing, toy


def section(page: str, title: str) -> str:
    """What is under a heading, up to the next of its rank."""
    rank = title.partition(" ")[0]
    lines = outside_fences(page)
    start = next(i for i, (line, fenced) in enumerate(lines) if not fenced and line.startswith(title))
    end = next(
        (i for i, (line, fenced) in enumerate(lines[start + 1 :], start + 1) if not fenced and _ends(line, rank)),
        len(lines),
    )
    return "\n".join(line for line, _ in lines[start + 1 : end]).strip()


def _ends(line: str, rank: str) -> bool:
    return bool(re.match(r"#+ ", line)) and len(line.partition(" ")[0]) <= len(rank)


def outside_fences(page: str) -> list[tuple[str, bool]]:
    """The lines, and whether each belongs to fenced code."""
    told, fence = [], ""
    for line in page.splitlines():
        begins = re.match(r"`{3,}", line)
        inside = bool(fence)
        if not fence and begins:
            fence = begins[0]
        elif fence and line == fence:
            fence = ""
        told.append((line, inside or bool(begins)))
    assert not fence, "a fence is left open"
    return told


def headings(page: str, rank: str = "##") -> list[str]:
    return [line for line, fenced in outside_fences(page) if not fenced and line.startswith(rank + " ")]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without the line of dashes."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|-")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def told(diagnosis: Diagnosis | None = None, **changed: object) -> str:
    return diagnosis_markdown(dataclasses.replace(diagnosis or samples.rich(), **changed))  # type: ignore[arg-type]


def one(cause: Cause) -> str:
    """The section of the only cause."""
    return section(told(causes=(cause,)), "## Causes")


# -- the page


def test_the_sections_in_their_order() -> None:
    assert headings(diagnosis_markdown(samples.proven())) == [
        "## What went wrong",
        "## Summary",
        "## What stays, and why",
        "## What to do next",
        "## How the repository compiles",
        "## Causes",
        "## What each fix earned",
        "## Performance",
        "## Diagnostics",
        "## Trace",
        "## Found in the source, not seen in the run",
        "## Fine as it is",
        "## Diagnostic commands",
        "## How to read it",
    ]


def test_what_there_is_nothing_of_is_left_out() -> None:
    assert headings(diagnosis_markdown(samples.empty())) == [
        "## Summary",
        "## Performance",
        "## Diagnostic commands",
        "## How to read it",
    ]


def test_the_summary_counts_causes_by_category_and_severity() -> None:
    summary = section(told(), "## Summary")
    assert rows(summary) == [
        ["category", "high", "medium", "low", "total"],
        ["recompilation", "1", "0", "0", "1"],
        ["graph break", "1", "1", "0", "2"],
        ["dynamic shape", "0", "1", "0", "1"],
        ["CUDA graphs", "0", "0", "1", "1"],
        ["**total**", "**2**", "**2**", "**1**", "**5**"],
    ]
    flat = " ".join(summary.split())
    assert "5 causes. With the fixes 2 are gone and 1 is left. What the fixes do to 2 of them is not known." in flat
    assert "1 did not show up in a second run" in flat


@pytest.mark.parametrize(
    ("fates", "sentence"),
    [
        (("removed", "removed"), "2 causes. With the fixes 2 are gone and none are left."),
        (("unknown",), "1 cause. What the fixes do to it is not known."),
        (
            ("remains", "unknown"),
            "2 causes. With the fixes none are gone and 1 is left. What the fixes do to 1 of them is not",
        ),
    ],
)
def test_what_all_fixes_do(fates: tuple[Fate, ...], sentence: str) -> None:
    causes = tuple(samples.cause(number, fate=fate) for number, fate in enumerate(fates, 1))
    assert sentence in section(told(causes=causes), "## Summary")


def test_a_search_that_kept_nothing_says_so() -> None:
    cause, proof = samples.cause(1, fate="unknown"), samples.proof()
    kept = section(told(causes=(cause,), proof=proof), "## Summary")
    assert "1 cause. What the fixes do to it is not known." in kept
    dropped = tuple(dataclasses.replace(one, outcome="not better") for one in proof.tried)
    nothing = section(told(causes=(cause,), proof=dataclasses.replace(proof, tried=dropped)), "## Summary")
    assert "1 cause. Nothing was kept." in nothing


@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        ("empty", "No graph break, recompile or skip was seen."),
        ("broken", "The original did not come to its end compiled, so no cause can be told."),
        ("unwell", "so no cause can be told. With the fixes it does."),
    ],
)
def test_no_cause_is_no_praise_where_something_went_wrong(sample: str, sentence: str) -> None:
    assert section(diagnosis_markdown(samples.SAMPLES[sample]()), "## Summary").endswith(sentence)


def test_what_was_counted_without_its_causes() -> None:
    """Single diagnostics look for no causes."""
    results = from_json(document(toy(oc={"counts": {"breaks": 2, "recompiles": 0, "dropped_frames": 1}})))
    summary = section(told(causes=(), results=results, judgement=None), "## Summary")
    assert summary.endswith("The original has 2 breaks, 1 dropped frame; what causes them was not looked for.")


def test_severity_is_explained_in_the_words_of_the_documentation() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "diagnose.md").read_text()
    assert dict(row[:2] for row in rows(text) if row[0] in SEVERITY) == SEVERITY
    reading = dict(READING)["Severity"]
    assert [name for name in SEVERITY if SEVERITY[name] not in reading] == []


def test_sections_and_outcomes_are_documented() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "diagnose.md").read_text()
    assert re.findall(r"^\d+\. \*\*(.+?)\*\*", text, re.MULTILINE) == list(TITLES.values())
    text = (Path(__file__).resolve().parent.parent / "docs" / "optimize.md").read_text()
    outcomes = [row[0].strip("`") for row in rows(text.partition("| outcome |")[2].partition("\n\n")[0])]
    assert sorted(outcomes) == sorted(get_args(Outcome))


def test_what_went_wrong_comes_first() -> None:
    page = diagnosis_markdown(samples.broken())
    assert page.index("no weights at weights.pt") < page.index("## Summary")
    assert "- Mode: the source alone" in page


def test_a_variant_that_did_not_end_well_shows_its_last_lines() -> None:
    endings = section(diagnosis_markdown(samples.unwell()), "### What did not run to its end")
    assert "toy: original eager: hung (time limit) after 10 s" in endings
    assert "```text\nlast line\n```" in endings


# -- a cause


def test_all_that_there_is_to_tell_of_a_cause() -> None:
    text = one(samples.rotary())
    assert text.startswith("### 1. [high] A branch on tensor data\n")
    for line in (
        "- Category: graph break",
        "- Location: `models/language_model.py:87`, in `RotaryEmbedding.forward`",
        "- Trigger: `if max_seq > self.original_max_seq_len:`",
        "- Reason: Data-dependent branching",
        "- Impact: 24 breaks, 13 recompiles; 247 launches in a pass of 13 calls; about 21.5 s of compiling",
        "- Seen in: forward, decode",
        "- With the fixes: removed",
        "> 87 |         if max_seq > self.original_max_seq_len:",
        "  88 |             scale = max_seq / self.original_max_seq_len",
        "**Fix**: FC101 data-dependent-branch (safe) at `models/language_model.py:87`",
        "**Fix**: FC503 unmarked-dynamic-dim (unsafe, strategy mark-unbacked) at `models/vlm.py:71`",
        "It assumes: every batch has at least two rows",
        "torch._dynamo.config.capture_scalar_outputs = True",
        "- What it does: `.item()` is captured in the graph.",
        "TORCH_LOGS=graph_breaks fix-compile diagnose --case cases/decode.py --only breaks models",
        "**Reference**: [GB0170 in PyTorch's graph-break registry]"
        "(https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html);"
        " `fix-compile rules FC101`; `fix-compile rules FC503`",
    ):
        assert line in text.splitlines(), line
    assert "```diff\n" + samples.ROTARY_DIFF in text
    assert "The test needs the tensor's value while Dynamo is tracing" in text
    assert "Else it is left alone." in text


def test_hints_are_for_what_we_cannot_fix() -> None:
    hints = ("Use `torch.cond` to express dynamic control flow.",)
    assert "torch.cond" not in one(dataclasses.replace(samples.rotary(), hints=hints))
    assert "- Use `torch.cond` to express dynamic control flow." in one(samples.cause(hints=hints)).splitlines()


def test_a_finding_without_a_fix_says_why() -> None:
    fix = ProposedFix("FC999", "some-pattern", "m.py:1", "a pattern", "display-only", assumption="nobody knows")
    text = one(samples.cause(fixes=(fix,)))
    assert "**Fix**: FC999 some-pattern (reported only) at `m.py:1`" in text
    assert "There is no fix, because: nobody knows" in text


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (Impact(), "-"),
        (Impact(breaks=1), "1 break"),
        (Impact(launches=1, calls=1), "1 launch in a pass of 1 call"),
        (Impact(launches=2), "2 launches"),
        (Impact(dropped_frames=2, limit_hits=1), "2 dropped frames, 1 recompile limit hit"),
        (Impact(cudagraph_skips=3, compile_seconds=0.0), "3 CUDA-graph skips; about 0.00 s of compiling"),
        (Impact(recompiles=8, calls=4, compile_seconds=123.4), "8 recompiles; about 123 s of compiling"),
    ],
)
def test_the_impact_names_what_was_measured_and_no_more(cost: Impact, shown: str) -> None:
    assert impact(cost) == shown


def test_what_a_second_run_did_not_show() -> None:
    assert "Not steady" in one(samples.cause(steady=False))
    assert "Not steady" not in one(samples.cause())


def test_what_was_told_before_is_not_told_again() -> None:
    first = samples.rotary()
    text = section(told(causes=(first, dataclasses.replace(first, number=2))), "## Causes")
    assert text.count("```diff") == 2  # two fixes
    assert text.count("The diff is that of cause 1.") == 2
    assert text.count("Else it is left alone.") == 1
    assert "**Fix safety**: as for cause 1." in text


def test_a_guard_is_code() -> None:
    assert "- Reason: `___stack0 == 2`" in one(samples.cause(category="recompilation", reason="___stack0 == 2"))
    assert "- Reason: Failed to trace builtin operator: print" in one(samples.cause())


def test_what_pytorch_has_indented_keeps_its_lines() -> None:
    explanation = "Detected branching.\n\n    It is computed as follows:\n      gt = gt(y, 0)\n"
    assert "Detected branching.\n\n```text\nIt is computed as follows:\n  gt = gt(y, 0)\n```" in one(
        samples.cause(explanation=explanation)
    )


def test_what_one_should_know_before_acting() -> None:
    assert "- Note: fix the breaks first" in one(samples.cause(note="fix the breaks first"))
    assert "Note" not in one(samples.cause())


def test_a_cause_without_a_place() -> None:
    text = one(samples.cause(where="", function="", trigger=""))
    assert "Location" not in text
    assert "Trigger" not in text


# -- what to do


def recommended(cause: Cause, diagnosis: Diagnosis | None = None) -> str:
    """What to do next about the only cause."""
    return " ".join(section(told(diagnosis, causes=(cause,)), "## What to do next").split())


FIX = ProposedFix("FC101", "data-dependent-branch", "m.py:1", "a branch", "safe", diff=samples.ROTARY_DIFF)
SETTING = Advice("torch._dynamo.config.x = True", "an effect", "a cost")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"fixes": (FIX,), "fate": "removed"}, "with FC101 (safe) it is gone. `fix-compile rules FC101`"),
        ({"fixes": (FIX,), "fate": "remains"}, "it is still there with FC101 (safe). `fix-compile rules FC101`"),
        (
            {"fixes": (FIX,), "fate": "unknown"},
            "FC101 (safe) may remove it, which was not measured. `fix-compile rules FC101`",
        ),
        ({"advice": (SETTING,)}, "no rule fixes it, but a setting helps: `torch._dynamo.config.x = True`."),
        ({"fixes": (dataclasses.replace(FIX, diff=""),)}, "to be changed by hand: a branch. `fix-compile rules FC101`"),
        ({"hints": ("Use torch.cond.",)}, "to be changed by hand, PyTorch's hints are below."),
        ({}, "no fix is known."),
    ],
)
def test_a_recommendation_for_each_cause(given: dict[str, object], shown: str) -> None:
    cause = samples.cause(title="print", where="m.py:1", **given)
    assert recommended(cause) == f"- {cause.severity.capitalize()} priority: cause 1, print at `m.py:1`: {shown}"


def test_what_was_kept_is_not_to_do_and_what_was_dropped_stays_with_the_reason() -> None:
    proof = samples.proven().proof
    assert proof is not None
    tried = (
        Tried(("FC101 in f",), ("m.py:1",), "kept", "part of the best configuration"),
        Tried(("scalars = True, shapes = True",), (), "not better", "not faster"),
        Tried(("FC301 in g",), (), "not tried", "the budget was used up"),
    )
    proof = dataclasses.replace(proof, tried=tried, restore="", patch="r.patch")
    by_hand = dataclasses.replace(FIX, diff="", assumption="the value is data-dependent", where="m.py:2")
    causes = (
        samples.cause(1, fixes=(FIX,), fate="removed"),
        samples.cause(
            2,
            title="item",
            where="m.py:2",
            fixes=(by_hand,),
            fate="remains",
            advice=(Advice("x.scalars = True", "", ""),),
        ),
    )
    given = dataclasses.replace(
        samples.proven(), proof=proof, causes=causes, command="optimize -o r.html -- python p.py"
    )
    page = diagnosis_markdown(given)
    stays = " ".join(section(page, "## What stays, and why").split())
    assert stays == (
        "- Cause 2, item at `m.py:2`: `scalars = True, shapes = True` was dropped: not faster; no fix: the value is"
        " data-dependent."
    )
    to_do = " ".join(section(page, "## What to do next").split())
    assert to_do.startswith("- Write the fixes that were kept: `git apply r.patch` - Medium priority: cause 2, item at")
    assert to_do.endswith(
        "to be changed by hand: a branch. `fix-compile rules FC101` - Measure what the budget has left out,"
        " `FC301 in g`: `optimize -o r.html --budget 1800 -- python p.py`"
    )


def test_a_case_that_does_not_begin_has_a_short_report() -> None:
    results = from_json(document(toy(oe=failing("case-error"), oc=failing("skipped"))))
    failed = dataclasses.replace(samples.broken(), results=results, problems=("toy: original eager: no",))
    lines = diagnosis_markdown(failed).splitlines()
    assert "- toy: original eager: no" in lines and "Fix it" in lines[-5] and len(lines) < 12


def test_what_a_kept_setting_has_removed_is_not_to_do_and_lines_stay_lines() -> None:
    proof = samples.proven().proof
    assert proof is not None
    setting = Tried(("capture_scalar_outputs = True",), (), "kept", "part of the best configuration")
    proof = dataclasses.replace(proof, tried=(setting,), ending="now 5 ms\nkept 1 setting")
    diagnosis = dataclasses.replace(samples.proven(), proof=proof)
    done = dataclasses.replace(diagnosis, causes=(samples.cause(fixes=(FIX,), fate="removed", where="m.py:1"),))
    assert "## What to do next" not in headings(diagnosis_markdown(done))
    assert "- Now 5 ms.\n- Kept 1 setting.\n" in diagnosis_markdown(diagnosis)


# -- what was measured


def test_each_fix_that_was_tried() -> None:
    text = section(diagnosis_markdown(samples.proven()), "## What each fix earned")
    table = rows(text)
    assert table[1] == [
        *("FC101 data-dependent-branch", "`models/language_model.py:87`", "kept"),
        "without it there are 24 breaks and 247 launches more",
    ]
    assert table[3][2] == "different"
    assert ["launches in one pass", "265", "14"] in table
    assert ["warm ms of one pass", "92.5", "34.2"] in table
    assert "fix-compile restore .fix-compile/2026-11-21T14-00-00" in text


def test_the_diff_of_a_fix_without_a_cause_is_shown_with_the_proof() -> None:
    page = told(samples.proven(), causes=())
    text = section(page, "## What each fix earned")
    assert "**FC301 kv-cache-mutation, FC302 tensor-held-index** (different)" in text
    assert "```diff\n" + samples.ROTARY_DIFF in text


def test_a_tree_that_was_not_measured_after_the_proof() -> None:
    proof = dataclasses.replace(samples.proof(), after=None, restore="")
    text = section(told(proof=proof), "## What each fix earned")
    assert ["breaks", "24", "-"] in rows(text)
    assert "undo" not in text


def test_the_case_table_is_the_harness_s() -> None:
    table = rows(section(told(), "## Performance"))
    assert table[1][:5] == ["decode [default]", "1e-07", "1e-06", "13 -> 0", "19 -> 2"]
    assert table[4][-1] == "NO (failed)"


def test_diagnostics_with_their_ending() -> None:
    text = section(told(), "## Diagnostics")
    assert ["input_ids dim 0", "2, 3, 1", "1", "6.1"] in rows(text)
    assert "- Mark dimension 0 of `input_ids` at train.py:61." in text
    assert "It did not end well (timeout): did not end within 600 s." in text
    assert "`--only vary-batch`, 24.5 s" in text


def test_commands_go_on_from_the_report() -> None:
    page = section(told(), "## Diagnostic commands")
    assert "html models --prove --unsafe\n" in page and "--trace" not in page
    assert "--trace trace" in section(told(trace=""), "## Diagnostic commands")
    assert "--prove" not in section(diagnosis_markdown(samples.proven()), "## Diagnostic commands")
    assert "--prove" not in section(diagnosis_markdown(samples.empty()), "## Diagnostic commands")


# -- markup


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_lines_of_prose_fit_and_tables_are_whole(sample: str) -> None:
    lines = outside_fences(diagnosis_markdown(samples.SAMPLES[sample]()))
    width = 0
    for number, (line, fenced) in enumerate(lines):
        if fenced or sample == "hostile":
            continue
        if line.startswith("|"):
            cells = len(re.split(r"(?<!\\)\|", line))
            assert width in (0, cells), line
            width = cells
        else:
            width = 0
            assert len(line) <= blocks.WIDTH or " " not in line.strip() or "](http" in line, line
        assert not line.endswith(" "), number


def test_others_text_adds_no_markup() -> None:
    """Neither tags nor headings, links, rows of tables; fences are longer than those in code."""
    page = diagnosis_markdown(samples.hostile())
    plain = [line for line, fenced in outside_fences(page) if not fenced]
    outside = [re.sub(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", "", line) for line in plain]
    assert [line for line in outside if re.search(r"(?<!\\)<|(?<!\\)\]\(", line)] == []
    assert len(headings(page, "#")) == 1
    assert [row for row in rows("\n".join(plain)) if not row] == []


def test_code_with_fences_and_backticks() -> None:
    cause = samples.cause(trigger="x = `a`", code=((62, "'''"), (63, "````"), (64, ""), (65, ""), (66, "y")))
    text = one(cause)
    assert "- Trigger: `` x = `a` ``" in text
    assert "`````text\n> 62 | '''\n  63 | ````\n  64 |\n  65 |\n  66 | y\n`````" in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a <b> & &amp; *c* `d <e>` | f", "a \\<b> & \\&amp; \\*c\\* `d <e>` \\| f"),
        ("self._kept and __init__ but cache_size", "self.\\_kept and \\_\\_init\\_\\_ but cache_size"),
        ("a ``b ` c`` d", "a ``b ` c`` d"),
        ("one ` alone", "one \\` alone"),
        ("[a](b) [c] ~~d~~ $e$", "\\[a](b) [c] \\~~d\\~~ \\$e\\$"),
        ("two\n  lines\x1b[31m", "two lines [31m"),
    ],
)
def test_what_is_escaped(given: str, shown: str) -> None:
    assert blocks.inline(given) == shown


def test_a_wrapped_line_begins_no_list() -> None:
    for word in ("-", "#", "+", ">", "==="):
        lines = blocks.prose("x" * 100 + f" {word} y")
        assert lines[1].startswith("\\" + word[0]), lines
    assert blocks.prose("x" * 100 + " -> y")[1] == "-> y"
    assert blocks.prose("x" * 100 + " 12. y")[1] == "12\\. y"
    assert blocks.prose("x" * 100 + " 12.5 y")[1] == "12.5 y"
    assert blocks.prose("`a - b` and " + "x" * 88 + " `c - d` e")[1] == "`c - d` e"


def test_a_table_is_aligned_and_its_bars_are_escaped() -> None:
    assert blocks.table(("a", "bcde"), [("`x | y`", "1"), ("2", "z" * 60)]) == [
        "| a        | bcde |",
        "|----------|------|",
        "| `x \\| y` | 1    |",
        "| 2        | " + "z" * 60 + " |",
    ]


def test_only_addresses_of_the_web_become_links() -> None:
    assert blocks.link("a", "https://example.org/gb0170.html") == "[a](https://example.org/gb0170.html)"
    assert blocks.link("a", "javascript:alert(1)") == "a"
    assert blocks.link("", "") == ""
