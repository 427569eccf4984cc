"""README's figures are of the rules and analyses as they are; pages of results say which commit they are of."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.claims import PARTS, added
from docs import measured, since

ROOT = Path(__file__).resolve().parent.parent

CLAIMS = measured.claims()


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_of_the_readme_is_of_todays_rules(name: str, tmp_path: Path) -> None:
    if why := since.why_not_comparable():
        pytest.skip(f"README's figures are not compared with today's rules: {why}")
    stale = measured.why_stale(name, CLAIMS[name], lambda: PARTS[name].trees(tmp_path).digest)
    assert stale is None, stale


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    """A repository with one rule and one analysis, committed."""
    for path in ("rules/fc101_x/rule.py", "rules/fc101_x/examples.py", "rules/fc102_y.py", "patcher/facts/z.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(
            '"""Old."""\n\n\nclass A:\n    """Old."""\n\n    invalid: tuple = (1,)\n    x = 1\n'
        )
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--no-verify", "-m", "First")
    yield tmp_path


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), "-c", "commit.gpgsign=false", *arguments], check=True, timeout=60)


def _edit(root: Path, path: str, old: str, new: str) -> list[str]:
    """What has changed since HEAD once ``old`` is ``new`` there."""
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))
    return since.changed_since("HEAD", root)


def test_documentation_is_no_change(repository: Path) -> None:
    assert since.changed_since("HEAD", repository) == []
    assert _edit(repository, "rules/fc101_x/rule.py", "Old.", "New.") == []
    assert _edit(repository, "rules/fc102_y.py", "x = 1", "x  =  1  # said") == []
    assert _edit(repository, "rules/fc102_y.py", "(1,)", "(1, 2)") == []
    assert _edit(repository, "rules/fc101_x/examples.py", "x = 1", "x = 2") == []
    (repository / "rules/fc101_x/room_examples.py").write_text("x = 1\n")
    assert since.changed_since("HEAD", repository) == []


def test_code_is_a_change(repository: Path) -> None:
    assert _edit(repository, "rules/fc102_y.py", "= 1\n", "= 2\n") == ["FC102"]
    assert _edit(repository, "patcher/facts/z.py", "= 1\n", "= 2\n") == ["FC102", "the analyses"]
    (repository / "rules/fc101_x/more.py").write_text("")
    assert since.sentence(since.changed_since("HEAD", repository)) == "FC101, FC102 and the analyses"


def test_history_that_is_not_there_is_said(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert since.why_not_comparable(repository) is None
    assert since.is_ancestor("HEAD", repository) and not since.is_ancestor("0" * 40, repository)
    with pytest.raises(LookupError):
        since.changed_since("0" * 40, repository)
    bare = tmp_path_factory.mktemp("exported")
    assert "exported" in (since.why_not_comparable(bare) or "")
    _git(
        repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Next", "--allow-empty", "--no-verify"
    )
    _git(bare, "clone", "--quiet", "--depth=1", repository.as_uri(), "shallow")
    assert "shallow" in (since.why_not_comparable(bare / "shallow") or "")


def test_a_stale_claim_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "is_ancestor", lambda commit: commit != "other")
    monkeypatch.setattr(measured, "changed_since", lambda commit: ["FC101", "FC102"] if commit == "old" else [])
    claim = {"commit": "old", "rules": ["FC101"], "command": "python x.py"}
    told = measured.why_stale("demo", claim, str) or ""
    assert "FC101 has changed since old" in told and "FC102" not in told and "make claims ARGS=demo" in told
    assert measured.why_stale("demo", {**claim, "rules": ["FC201"]}, str) is None
    same = {**claim, "patch": "a"}
    assert measured.why_stale("demo", same, lambda: "a") is None and measured.why_stale("demo", same, lambda: "b")
    assert "not committed" in (measured.why_stale("demo", {**claim, "commit": "old+changes"}, str) or "")
    assert "no commit before" in (measured.why_stale("demo", {**claim, "commit": "other"}, str) or "")
    hand = {**claim, "by_hand": True}
    assert "python x.py" in (measured.why_stale("gpu", hand, str) or "")
    assert measured.why_stale("gpu", {**hand, "old": True}, str) is None


def test_records_of_results_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "is_ancestor", lambda commit: True)
    monkeypatch.setattr(measured, "date_of", lambda commit: "2026-01-02")
    monkeypatch.setattr(measured, "changed_since", lambda commit: ["FC101", "FC102", "the analyses"])
    page = "# A\n\n<!-- measured: at 1234567{}; with make x -->\n\n{}<!-- end of measured -->\n\n| 1 |\n"
    line = "Measured on 1234567 (2026-01-02) with `make x`. Changed since: FC101, FC102 and the analyses."
    assert measured.with_line(page.format("", ""), "a.md", fresh=True) == page.format("", line + "\n\n")
    told = measured.with_line(page.format("; depends on FC102", ""), "a.md", fresh=True)
    assert "Changed since: FC102.\n" in told
    older = page.format("", line.replace("FC102 and", "and") + "\n\n")
    assert measured.with_line(older, "a.md", fresh=False) == older, "what comes from git is not compared"
    other = measured.with_line(older.replace("at 1234567;", "at 7654321;"), "a.md", fresh=False)
    assert "Measured on 7654321 with" in other
    with pytest.raises(SystemExit, match="no record"):
        measured.with_line("# A\n\n| 1 |\n", "a.md", fresh=False)


def test_commits_of_records_are_in_the_history() -> None:
    if why := since.why_not_comparable():
        pytest.skip(f"commits of docs/results are not looked up: {why}")
    for page in (ROOT / "docs" / "results").glob("*.md"):
        for commit in re.findall(r"^<!-- measured: at ([0-9a-f]{7,40})\b", page.read_text(encoding="utf-8"), re.M):
            assert since.is_ancestor(commit), f"{page.name}: {commit} is no commit before this one"


def test_the_figures_of_classes_are_added_up() -> None:
    def line(row: str, tree: str, graphs: int, *outputs: object) -> dict[str, object]:
        return {"row": row, "tree": tree, "first": {"graphs": graphs}, "outputs": list(outputs)}

    lines = [line("A", "original", 4), line("A", "safe", 1, 0.0), line("A", "unsafe", 1, 0.0)]
    lines += [line("B", "original", 2), line("B", "safe", 2, 0.0), line("B", "unsafe", 1, 1e-7)]
    outputs = "1 of 2 the same bit for bit"
    assert added(lines) == {"original": 4, "safe": 1, "unsafe": 0, "outputs": outputs}
    with pytest.raises(SystemExit, match="B, safe: no message"):
        added([*lines, {"row": "B", "tree": "safe", "failure": "no message"}])
