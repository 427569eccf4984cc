"""The optimisation report as JSON: all of it, under the names that are documented."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from patcher.diagnose import diagnosis as types
from patcher.report.diagnosis_json import diagnosis_json
from patcher.version import VERSION
from tests import diagnosis_samples as samples

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "json-schema.md"


def told(diagnosis: types.Diagnosis) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document: dict[str, Any] = json.loads(diagnosis_json(diagnosis), parse_constant=refuse)
    return document


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_the_top_is_the_same_for_every_report(sample: str) -> None:
    document = told(samples.SAMPLES[sample]())
    assert list(document) == [
        *("schema", "tool", "summary", "title", "command", "started", "facts", "problems", "causes", "static_only"),
        *("fine", "sites", "diagnostics", "counted", "trace", "effect", "proof", "measured"),
    ]
    assert document["schema"] == 1
    assert document["tool"] == {"name": "fix-compile", "version": VERSION}
    assert len(document["causes"]) == sum(row["high"] + row["medium"] + row["low"] for row in document["summary"])


def test_a_cause_with_all_that_belongs_to_it() -> None:
    cause = told(samples.rich())["causes"][0]
    assert (cause["number"], cause["category"], cause["severity"]) == (1, "graph break", "high")
    assert cause["impact"] == {
        **{"breaks": 24, "dropped_frames": 0, "recompiles": 13, "limit_hits": 0, "cudagraph_skips": 0},
        **{"launches": 247, "calls": 13, "compile_seconds": 21.46},
    }
    assert cause["code"][3] == {"line": 87, "text": "        if max_seq > self.original_max_seq_len:"}
    assert [fix["code"] for fix in cause["fixes"]] == ["FC101", "FC503"]
    assert cause["fixes"][0]["diff"] == samples.ROTARY_DIFF
    assert (cause["registry"], cause["steady"], cause["fate"]) == ("GB0170", True, "removed")


def test_what_is_not_known_is_null() -> None:
    document = told(samples.rich())
    assert document["causes"][2]["impact"]["compile_seconds"] is None
    assert document["proof"] is None
    assert told(samples.broken())["measured"] is None


def test_what_was_measured_is_told_as_test_tells_it() -> None:
    diagnosis = samples.rich()
    assert diagnosis.results is not None and diagnosis.judgement is not None
    measured = told(diagnosis)["measured"]
    assert list(measured) == ["results", "verdicts", "unexercised", "equivalent"]
    assert measured["results"] == json.loads(json.dumps(diagnosis.results.document))
    verdict = measured["verdicts"][-1]
    assert list(verdict) == ["case", "mode", "status", "reasons", "notes"]
    assert (verdict["case"], verdict["mode"], verdict["status"]) == ("forward", "reduce-overhead", "failed")
    assert measured["equivalent"] is False


def test_results_without_a_verdict() -> None:
    measured = told(samples.empty())["measured"]
    assert measured["results"]["cases"]
    assert (measured["verdicts"], measured["unexercised"], measured["equivalent"]) == ([], [], None)


def test_the_proof_with_its_own_measurement() -> None:
    proof = told(samples.proven())["proof"]
    assert [item["outcome"] for item in proof["tried"]] == ["kept", "not better", "different"]
    assert (proof["before"]["launches"], proof["after"]["launches"]) == (265, 14)
    assert proof["measured"]["verdicts"][0]["status"] == "equivalent"


def test_the_configuration_by_name() -> None:
    assert told(samples.rich())["sites"][0]["arguments"] == [
        {"name": "backend", "value": "cfg.backend"},
        {"name": "mode", "value": '"max-autotune"'},
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_figures_that_json_does_not_know_are_text(value: float) -> None:
    impact = types.Impact(compile_seconds=value)
    causes = (samples.cause(impact=impact),)
    assert told(dataclasses.replace(samples.empty(), causes=causes))["causes"][0]["impact"]["compile_seconds"] == str(
        value
    )


def documented() -> dict[str, set[str]]:
    """The fields by the heading of their table, in the part on the diagnosis."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("## The diagnosis")[2]
    found: dict[str, set[str]] = {}
    for part in re.split(r"(?m)^(?=### )", text):
        title = part.partition("\n")[0].removeprefix("### ").strip()
        cells = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+) \|", part)
        found[title] = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    return found


def test_every_field_is_documented_and_no_other() -> None:
    document = told(samples.proven())
    cause = document["causes"][0]
    shown = {
        "The document": document,
        "A cause": cause,
        "Its impact": cause["impact"],
        "A fix": cause["fixes"][0],
        "A setting": cause["advice"][0],
        "A remark": document["fine"][0],
        "A place that compiles": document["sites"][0],
        "A diagnostic": document["diagnostics"][0],
        "What was measured": document["measured"],
        "The proof": document["proof"],
        "A fix that was tried": document["proof"]["tried"][0],
        "The totals": document["proof"]["before"],
    }
    fields = documented()
    for title, value in shown.items():
        assert fields[title] == set(value), title
