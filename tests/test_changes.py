"""Somebody else's change as results: diffs that fit and diffs that do not, and all that differs from a revision."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.patching.changes import Change, ChangeError, of_diff, since

Git = Callable[..., bytes]
NUMBERS = "".join(f"x{n} = {n}\n" for n in range(20))


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in the working folder, a repository with one commit of ``net/a.py``, ``net/b.py`` and ``data.json``."""
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def run(*arguments: str) -> bytes:
        return subprocess.run(["git", *named, *arguments], cwd=tmp_path, capture_output=True, check=True).stdout

    (tmp_path / "net").mkdir()
    (tmp_path / "net/a.py").write_text(NUMBERS)
    (tmp_path / "net/b.py").write_bytes(b"y = 1\r\n# caf\xc3\xa9\r\n")
    (tmp_path / "data.json").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    run("init", "-q")
    run("add", ".")
    run("commit", "-qm", "first")
    return run


def edited() -> None:
    """A line changed, a file moved, one that is new (with a blank in its name), one that is gone, and data."""
    Path("net/a.py").write_text(NUMBERS.replace("x7 = 7", "x7 = 8"))
    Path("net/b.py").rename("net/c.py")
    Path("net/a new.py").write_text("z = 1\n")
    Path("data.json").write_text("[]\n")


def sides(change: Change) -> dict[str, tuple[bytes, bytes, bool, bool]]:
    return {r.path: (r.before, r.after, r.created, r.removed) for r in change.results}


MOVED = b"y = 1\r\n# caf\xc3\xa9\r\n"
EXPECTED = {
    "net/a.py": (NUMBERS.encode(), NUMBERS.replace("x7 = 7", "x7 = 8").encode(), False, False),
    "net/b.py": (MOVED, b"", False, True),
    "net/c.py": (b"", MOVED, True, False),
    "net/a new.py": (b"", b"z = 1\n", True, False),
}


@pytest.mark.parametrize("how", ["untracked", "staged", "committed"])
def test_since_a_revision(git: Git, how: str) -> None:
    edited()
    if how != "untracked":
        git("add", "-A")
    if how == "committed":
        git("commit", "-qm", "second")
    change = since("HEAD~1" if how == "committed" else "HEAD", "net")
    assert sides(change) == EXPECTED
    assert change.on_disk == "patched"
    assert ("not committed" in change.told) is (how != "committed")
    assert change.notes == ("no Python source, so the same on both sides: data.json",)
    assert all(result.changed for result in change.results)


@pytest.mark.parametrize("options", [(), ("-M",), ("--no-prefix",), ("-U0", "--binary")])
def test_of_a_diff(git: Git, options: tuple[str, ...]) -> None:
    edited()
    git("add", "-A")
    diff = git("diff", "--cached", *options)
    git("reset", "-q", "--hard")
    if "-U0" in options:
        with pytest.raises(ChangeError, match=r"d\.diff: does not fit net/a\.py at line 8"):
            of_diff(diff, "d.diff", ["net"])  # what has no context is not guessed at
        return
    change = of_diff(diff, "d.diff", ["net"])
    assert sides(change) == EXPECTED
    assert (change.on_disk, "not committed" in change.told) == ("original", False)
    assert not git("status", "--porcelain")
    Path("net/a.py").write_text("another\n")
    with pytest.raises(ChangeError, match=r"^d\.diff: "):
        of_diff(diff, "d.diff", ["net"])


def test_of_a_diff_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a repository, names begin at the working folder, or at what was given."""
    (tmp_path / "p/net").mkdir(parents=True)
    (tmp_path / "p/net/a.py").write_text("a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    diff = b"--- a/net/a.py\t2026-01-01\n+++ b/net/a.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n"
    for folders in (["p"], ["p/net"], ["p/net/a.py"]):
        assert sides(of_diff(diff, "d", folders)) == {"p/net/a.py": (b"a\n", b"b\n", False, False)}
    with pytest.raises(ChangeError, match=r"^d: changes net/a\.py, which is not there$"):
        of_diff(diff, "d", [])
    with pytest.raises(ChangeError, match="is in no git repository"):
        since("HEAD", "p")


@pytest.mark.parametrize(
    ("diff", "told"),
    [
        (b"", "is empty"),
        (b"hello\n", "is no unified diff"),
        (b"--- a/net/a.py\n+++ b/net/a.py\n@@ -1,9 +1,9 @@\n-a\n", "corrupt patch"),
        (b"--- a/net/a.py\n+++ b/net/a.py\n@@ -2 +2 @@\n-a\n+b\n", "does not fit net/a.py at line 2"),
        (b"--- a/net/z.py\n+++ b/net/z.py\n@@ -1 +1 @@\n-a\n+b\n", "changes net/z.py, which is not there"),
        (b"--- a/../z.py\n+++ b/../z.py\n@@ -1 +1 @@\n-a\n+b\n", "changes ../z.py, which is outside of the project"),
        (b"--- a/data.json\n+++ b/data.json\n@@ -1 +1 @@\n-{}\n+[]\n", "changes no Python source (data.json)"),
        (
            b"diff --git a/net/a.py b/net/a.py\nindex 1..2 100644\nBinary files a/net/a.py and b/net/a.py differ\n",
            "is a binary patch of net/a.py, which cannot be measured",
        ),
    ],
)
def test_what_is_no_change(git: Git, diff: bytes, told: str) -> None:
    with pytest.raises(ChangeError) as raised:
        of_diff(diff, "d.diff", ["net"])
    assert str(raised.value).startswith(f"d.diff: {told}")
    assert "\n" not in str(raised.value)


def test_what_is_no_revision(git: Git) -> None:
    for revision in ("nosuch", "--help", "HEAD:net/a.py"):
        with pytest.raises(ChangeError, match="there is no revision"):
            since(revision, "net")


def test_the_case_is_not_judged(git: Git) -> None:
    edited()
    change = since("HEAD", ".").without([str(Path("net/a.py").absolute())])
    assert set(sides(change)) == set(EXPECTED) - {"net/a.py"}
    assert change.notes[-1] == "net/a.py: a case is the same on both sides: as it is on disk"
    assert change.without(["net/z.py"]) is change
