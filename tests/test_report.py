"""Results as text, JSON, workflow commands and diffs."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patcher.report import REPORTS, Outcome
from patcher.report.diff import coloured, file_diff
from patcher.report.text import summary
from patcher.results import Altered, Bug, FileResult, PatchResult, Reported

SAFE = Reported("FC101", "branch", "a branch", 3, 5, 4, 1, "safe")
UNSAFE = Reported("FC301", "cache", "a cache", 1, 2, 1, 9, "unsafe", "one thread", "eager-zone")
DISPLAY = Reported("FC901", "note", "a 100%\nnote: a, b", 9, 1, 9, 3, "display-only", "no proof")
HIDDEN = Reported("FC101", "branch", "hidden", 1, 1, 1, 2, "safe", suppressed=True)
PATCHED = FileResult(
    "m.py",
    b"old\n",
    b"new\n",
    patch=PatchResult("new\n", (SAFE, HIDDEN, DISPLAY, UNSAFE), (SAFE,), (UNSAFE, DISPLAY), 1),
)
NOTED = FileResult("n.py", patch=PatchResult("", (DISPLAY,), (), (DISPLAY,), 0, (Bug("FC502", 7, "crashed"),)))
RESULTS = (FileResult("a.py", error="is bad"), FileResult("clean.py"), PATCHED, NOTED)


def outcome(call: Any = "verify-only", results: tuple[FileResult, ...] = RESULTS, **more: Any) -> Outcome:
    return Outcome(call, results, "1.2.3", (2, 13), **more)


def test_text_of_verify() -> None:
    told = outcome(altered=(Altered("p.py", "edited", "0003"),), strict=True)
    assert REPORTS["text"](told) == (
        "m.py:3:5: FC101 [safe fix] a branch\n"
        "p.py: altered since run 0003 patched it (edited)\n"
        "Notes (for your information; these do not fail the check):\n"
        "  m.py:1:2: FC301 [unsafe fix] a cache (strategy eager-zone) -- assumes: one thread\n"
        "  m.py:9:1: FC901 [no fix] a 100% note: a, b -- because: no proof\n"
        "  n.py:9:1: FC901 [no fix] a 100% note: a, b -- because: no proof\n"
    )
    assert summary(told) == (
        "4 findings: 1 fixable, 1 unsafe, 2 without a fix in 2 files; 1 suppressed; "
        "1 patched file altered since; 1 path could not be handled"
    )
    assert told.failed
    assert told.to_fix
    assert "Notes" not in REPORTS["text"](outcome(quiet=True))
    assert summary(outcome(unsafe=True)).startswith("4 findings: 2 fixable, 0 unsafe")


def test_functions_that_nothing_compiles_are_counted() -> None:
    idle = (FileResult("a.py", not_compiled=2), FileResult("b.py", not_compiled=1), FileResult("t.py", beside=True))
    told = outcome("dry-run", idle)
    assert summary(told) == (
        "no findings in 2 files; skipped 3 functions not reachable from compiled code (see --compiled); "
        "1 test or script passed over (see --all)"
    )
    assert json.loads(REPORTS["json"](told))["summary"]["not_compiled"] == 3
    assert "not reachable" not in summary(outcome("dry-run", (FileResult("a.py"),)))


def test_text_of_apply() -> None:
    told = outcome("apply", written=frozenset({"m.py"}))
    assert REPORTS["text"](told) == "m.py:3:5: FC101 [fixed] a branch\n"
    assert summary(told).startswith("4 findings: 1 fixed, 1 unsafe, 2 without a fix in 2 files")
    refused = outcome("apply", refused={"m.py": "is read-only"})
    assert REPORTS["text"](refused) == ""
    assert summary(refused).startswith("4 findings: 0 fixed, 1 fixable, 1 unsafe, 2 without")
    assert summary(outcome(results=(FileResult("a.py"),))) == "no findings in 1 file"


def test_clean() -> None:
    told = outcome(results=(FileResult("a.py"), FileResult("b.py")))
    assert REPORTS["text"](told) == REPORTS["github"](told) == ""
    assert not told.failed
    assert not told.to_fix
    assert not outcome(results=(PATCHED,)).failed
    assert outcome(results=(NOTED,)).failed  # a bug of ours
    assert not outcome(results=(NOTED,)).to_fix


def test_json_follows_its_schema() -> None:
    described = json.loads((Path(__file__).parent.parent / "docs/report.schema.json").read_text())
    for told in (
        outcome(altered=(Altered("p.py", "edited", "0003"),)),
        outcome("apply", written=frozenset({"m.py"}), run="0001", store=".fix-compile"),
        outcome("dry-run"),
    ):
        document = json.loads(REPORTS["json"](told))
        assert document["schema"] == 1
        assert [file["path"] for file in document["files"]] == ["a.py", "m.py", "n.py"]
        conforms(document, described, described)
    assert document["files"][1]["diff"].startswith("--- a/m.py\n+++ b/m.py\n@@")
    assert document["summary"]["findings"] == 4


def conforms(value: Any, schema: Any, root: Any) -> None:
    """The small part of JSON Schema that we use: types, required, properties without others, items, enum, const."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    allowed = schema.get("type", [])
    if allowed:
        names = [allowed] if isinstance(allowed, str) else allowed
        assert any(type(value) is kinds[name] for name in names), (value, names)
    assert value in schema.get("enum", [value])
    assert value == schema.get("const", value)
    if isinstance(value, dict):
        assert set(schema["required"]) <= set(value) <= set(schema["properties"])
        for key, item in value.items():
            conforms(item, schema["properties"][key], root)
    if isinstance(value, list):
        for item in value:
            conforms(item, schema["items"], root)


def test_github() -> None:
    lines = REPORTS["github"](outcome(altered=(Altered("a:b,c.py", "edited", "0003"),), strict=True)).splitlines()
    assert lines == [
        "::error file=a.py,title=fix-compile::is bad",
        "::error file=n.py,line=7,title=FC502::a bug in fix-compile: crashed",
        "::notice file=m.py,line=1,endLine=1,col=2,endColumn=9,title=FC301::a cache"
        "%0AFix, if this holds: one thread: fix-compile fix --unsafe --select FC301 m.py (strategy eager-zone)"
        "%0AMore: fix-compile rules FC301",
        "::warning file=m.py,line=3,endLine=4,col=5,title=FC101::a branch%0AFix: fix-compile fix --select FC101 m.py"
        "%0AMore: fix-compile rules FC101",
        "::notice file=m.py,line=9,endLine=9,col=1,endColumn=3,title=FC901::a 100%25%0Anote: a, b"
        "%0ANo fix: no proof. What to do: fix-compile rules FC901",
        "::notice file=n.py,line=9,endLine=9,col=1,endColumn=3,title=FC901::a 100%25%0Anote: a, b"
        "%0ANo fix: no proof. What to do: fix-compile rules FC901",
        "::warning file=a%3Ab%2Cc.py,title=fix-compile::altered since run 0003 of fix-compile patched it (edited)",
    ]


def test_what_runs_most_often_comes_first_in_all_files() -> None:
    def found(path: str, line: int, reached: str, rarity: int) -> FileResult:
        item = replace(SAFE, line=line, end_line=line, reached=reached, rarity=rarity)
        return FileResult(path, patch=PatchResult("", found=(item, replace(item, line=line + 1, rarity=rarity - 1))))

    told = outcome(results=(found("a.py", 5, "some calls", 4), found("b.py", 7, "each layer", 1)))
    order = [(entry.path, entry.reported.line) for entry in told.entries]
    assert order == [("b.py", 8), ("b.py", 7), ("a.py", 6), ("a.py", 5)]
    assert [line.split(":")[0] for line in REPORTS["text"](told).splitlines() if " FC" in line] == [
        "b.py",
        "b.py",
        "a.py",
        "a.py",
    ]
    assert "(each layer)" in REPORTS["text"](told)
    assert [line.split(",")[0][-4:] for line in REPORTS["github"](told).splitlines()] == [
        "b.py",
        "b.py",
        "a.py",
        "a.py",
    ]


TEXT = b"".join(b"line %d\n" % n for n in range(40))
CHANGES = {
    "one line": (TEXT, TEXT.replace(b"line 20\n", b"changed\n")),
    "first and last": (TEXT, b"new\n" + TEXT.replace(b"line 39", b"end")),
    "far apart": (TEXT, TEXT.replace(b"line 3\n", b"").replace(b"line 30\n", b"line 30\nmore\nmore\n")),
    "no final newline": (b"a\nb", b"a\nc"),
    "no final newline kept in context": (b"a\nb\nc", b"x\nb\nc"),
    "gains a final newline": (b"a\nb", b"a\nb\n"),
    "loses a final newline": (b"a\nb\n", b"a\nb"),
    "crlf": (b"a\r\nb\r\nc\r\n", b"a\r\nx\r\nc\r\n"),
    "lone carriage return": (b"a\rb\nc\n", b"a\rx\nc\n"),
    "form feed": (b"a\n\x0c\nb\n", b"a\n\x0c\nx\n"),
    "latin-1": (b"# coding: latin-1\n'\xe9'\nb\n", b"# coding: latin-1\n'\xe9'\nx\n"),
    "from empty lines": (b"\n\n\n\n\n\n\n\n\n", b"\n\n\n\nx\n\n\n\n\n\n"),
    "all new": (b"a\n", b"b\nc\nd\n"),
}


@pytest.mark.parametrize("tool", [["git", "apply", "-p1"], ["patch", "-p1", "--binary", "-i"]], ids=["git", "patch"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_diff_can_be_applied(tmp_path: Path, change: str, tool: list[str]) -> None:
    before, after = CHANGES[change]
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub/with blank é.py"
    file.write_bytes(before)
    (tmp_path / "change.diff").write_bytes(file_diff(FileResult("x", before, after), "sub/with blank é.py"))
    done = subprocess.run([*tool, "change.diff"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == after


def test_odd_names_are_quoted(tmp_path: Path) -> None:
    name = 'tab\tquote" line\nback\\.py'
    (tmp_path / name).write_bytes(b"a\n")
    (tmp_path / "change.diff").write_bytes(file_diff(FileResult("x", b"a\n", b"b\n"), name))
    subprocess.run(["git", "apply", "change.diff"], cwd=tmp_path, check=True)
    assert (tmp_path / name).read_bytes() == b"b\n"


def test_a_hunk_has_three_lines_around_it_where_the_file_has_them() -> None:
    """Also where lines of the end stand in the middle as well."""
    before = "".join(f"{line}\n" for line in "p q r same x same x same end more last".split())
    after = before.replace("r\nsame\nx\n", "r\n")
    diff = file_diff(FileResult("x", before.encode(), after.encode()), "x.py").decode()
    lines = diff.splitlines()[3:]
    changed = [i for i, line in enumerate(lines) if line[0] in "+-"]
    assert min(changed) == 3 and len(lines) - 1 - max(changed) == 3, diff


def test_diff_text() -> None:
    diff = file_diff(FileResult("x", b"a\nb", b"a\nc"), "/abs/x.py")
    assert diff == (
        b"--- a/abs/x.py\n+++ b/abs/x.py\n@@ -1,2 +1,2 @@\n a\n"
        b"-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    )
    assert b"\x1b[31m-b\x1b[0m\n" in coloured(diff)
    assert b"\x1b[1m--- a/abs/x.py\x1b[0m\n" in coloured(diff)
    assert file_diff(FileResult("x", b"a", b"a"), "x") == b""
