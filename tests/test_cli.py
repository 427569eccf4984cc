"""The calls of the command line, end to end, with rules that need no torch."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_compare import document, toy
from toy import RULES

from patcher import cli
from patcher.cli import showing
from patcher.cli.words import OTHERS, PAGES, SPELLED, split
from patcher.diagnose.diagnosing import Diagnosed
from patcher.files.kept import default_folder
from patcher.files.restore import without_patch
from patcher.measuring import measure
from patcher.patching import calls
from patcher.patching.share import needed
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.run.program import no_notebook
from patcher.version import VERSION
from rules import load_rules
from tests.diagnosis_samples import SAMPLES

ROOT = Path(__file__).parent.parent
TOY = str(Path(__file__).parent / "toy.py")
NOT_RUN = "nothing was run; fix-compile diagnose runs your model and shows where it breaks\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a project that has one file to fix; returns exit status, stdout and stderr."""
    (tmp_path / "setup.cfg").write_text("")
    (tmp_path / "m.py").write_text("a = slow()\nb = sloppy()\nc = stuck()\n")
    (tmp_path / "clean.py").write_text("x = 1\n")
    (tmp_path / "used" / "mine").mkdir(parents=True)
    (tmp_path / "case.py").write_text("def build(): ...\ndef calls(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fix-compile"])

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = cli.main(RULES, arguments)
        return (status, *capfd.readouterr())

    return call


def process(*arguments: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=cwd, env=environment(), capture_output=True, text=True, **more)  # type: ignore[call-overload, no-any-return]


def command(*arguments: str) -> Sequence[str]:
    return [sys.executable, TOY, *arguments]


def environment(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "TERM": "xterm", **more}


def test_apply_then_restore(tool: Run, tmp_path: Path) -> None:
    status, out, err = tool(".")
    assert (status, err) == (0, "")
    assert out == (
        "m.py:1:5: FC901 [fixed] slow call\n"
        "3 findings: 1 fixed, 1 unsafe, 1 without a fix in 1 file\n"
        "1 file patched; to put the originals back: fix-compile restore 0001\n"
        "check also lists what has no safe fix\n"
    )
    assert (tmp_path / "m.py").read_text().startswith("a = fast()\nb = sloppy()\n")
    left = "2 findings: 0 fixed, 1 unsafe, 1 without a fix in 1 file\ncheck also lists what has no safe fix\n"
    assert tool(".")[:2] == (0, left)
    assert tool("restore") == (0, "m.py: restored\nrun 0001: 1 restored, 0 were original already\n", "")
    assert (tmp_path / "m.py").read_text().startswith("a = slow()\n")
    status, _, err = tool("restore")
    assert status == 2
    assert "nothing to restore: every run" in err


def test_restore_refuses_what_was_edited(tool: Run, tmp_path: Path) -> None:
    tool("m.py")
    (tmp_path / "m.py").write_text("mine = 1\n")
    status, out, err = tool("restore", "1")
    assert (status, out) == (2, "run 0001: 1 of 1 files left alone\n")
    assert err.startswith("m.py: error: was edited since; --force")
    status, out, err = tool("restore", "1", "--force")
    assert status == 0
    assert "your edited version is kept in .fix-compile/runs/0001/" in out


def test_restore_takes_the_patch_alone_out(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("a = 1\nb = slow()\nc = 3\nd = 4\n")
    tool("m.py")
    (tmp_path / "m.py").write_text("a = 1\nb = fast()\nc = 3\nd = mine\ne = 5\n")
    status, out, err = tool("restore")
    assert (status, out) == (2, "run 0001: 1 of 1 files left alone\n")
    assert err.startswith("m.py: error: was edited since; --keep-edits takes the patch alone out, --force puts")
    status, out, err = tool("restore", "--keep-edits")
    assert (status, err) == (0, "")
    assert "your edited version is kept in .fix-compile/runs/0001/" in out
    assert (tmp_path / "m.py").read_text() == "a = 1\nb = slow()\nc = 3\nd = mine\ne = 5\n"


@pytest.mark.parametrize("edited", ["a = 1\nb = fast()\nc = mine\n", "a = mine\nb = fast()\nc = 3\n"])
def test_edits_beside_the_patch_are_not_taken_apart(tool: Run, tmp_path: Path, edited: str) -> None:
    (tmp_path / "m.py").write_text("a = 1\nb = slow()\nc = 3\n")
    tool("m.py")
    (tmp_path / "m.py").write_text(edited)
    for option in ((), ("--keep-edits",)):
        status, _, err = tool("restore", *option)
        assert (status, err) == (
            2,
            "m.py: error: was edited since; --force puts the original back and sets your version aside\n",
        )
    assert "mine" in (tmp_path / "m.py").read_text()


def test_what_would_be_no_python_is_not_taken_out() -> None:
    """The edit stands in brackets that the patch has put there."""
    before, after = b"x = 1\n\n\n\n\ny = 2\n", b"x = [\n\n\n\n\n]\ny = 2\n"
    assert without_patch(before, after, after.replace(b"y = 2\n", b"y = 2\n\nz = 3\n")) == before + b"\nz = 3\n"
    assert without_patch(before, after, b"x = [\n\n\n    3,\n\n]\ny = 2\n") is None


@pytest.mark.parametrize(("answer", "text"), [(b"y\n", "slow()"), (b"n\n", "fast()")])
def test_restore_asks_on_a_terminal(tmp_path: Path, answer: bytes, text: str) -> None:
    (tmp_path / "m.py").write_text("slow()\na = 1\nb = 2\n")
    assert process("fix", "m.py", cwd=tmp_path).returncode == 0
    (tmp_path / "m.py").write_text("fast()\na = 1\nb = mine\n")
    ended, seen = conversation(tmp_path, "restore", question=b"[y/N]: ", answer=answer)
    assert b"Take the patch alone out of it, and keep the edits?" in seen
    assert ended == (0 if answer == b"y\n" else 2)
    assert (tmp_path / "m.py").read_text() == f"{text}\na = 1\nb = mine\n"


def test_edits_after_a_patch_do_not_fail_the_check(tool: Run, tmp_path: Path) -> None:
    tool("m.py")
    (tmp_path / "m.py").write_text("x = 1\n")
    for spelled in (("check",), ("--verify-only", "m.py"), ("verify", "--unsafe", ".")):
        status, out, err = tool(*spelled)
        assert (status, err) == (0, "")
        assert "  m.py: altered since run 0001 patched it (edited)\n" in out
        assert out.endswith("to hear no more of it: fix-compile forget 0001\n")
    assert "::notice file=m.py,title=fix-compile::altered" in tool("check", "--format", "github")[1]
    status, out, _ = tool("check", "--strict")
    assert (status, out.startswith("m.py: altered since run 0001")) == (1, True)
    assert "::warning file=m.py" in tool("check", "--strict", "--format", "github")[1]
    assert "altered" not in tool("check", "-q")[1]


def test_forget(tool: Run, tmp_path: Path) -> None:
    for text in ("slow()\n", "slow(1)\n"):
        (tmp_path / "m.py").write_text(text)
        tool("m.py")
    (tmp_path / "m.py").write_text("mine = 1\n")
    assert tool("forget", "3")[2].endswith("(recorded: 0001, 0002)\n")
    for word in ("restore", "forget"):
        assert "a run is a number, and taken as a whole, not 'm.py' (recorded: 0001, 0002)" in tool(word, "m.py")[2]
    assert tool("forget", "1") == (0, "run 0001 is forgotten, with the originals of 1 file\n", "")
    assert tool("forget") == (0, "run 0002 is forgotten, with the originals of 1 file\n", "")
    assert list((tmp_path / ".fix-compile/runs").iterdir()) == []
    assert tool("check", "--strict")[0] == 0
    assert "nothing to forget" in tool("forget")[2]
    assert (tmp_path / "m.py").read_text() == "mine = 1\n"


def test_a_run_whose_record_is_damaged(tool: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "m.py").write_text("slow()\n" * number)
        tool("m.py")
    record = tmp_path / ".fix-compile/runs/0002/manifest.json"
    record.write_text("{")
    for word in ("check", "restore", "forget"):
        status, _, err = tool(word)
        told = f"{record}: is damaged (JSONDecodeError); forget 0002 removes what is left of that run"
        assert (status, err) == (2, f"fix-compile {word}: error: {told}\n")
    assert tool("forget", "0002") == (0, "run 0002 is forgotten, with the originals of 0 files\n", "")
    assert not record.parent.exists()
    assert tool("check")[0] == 0
    assert "m.py: error: was edited since" in tool("restore")[2]


def test_options_of_backup(tool: Run, tmp_path: Path) -> None:
    assert "restore" not in tool("--no-backup", "m.py")[1]
    assert not (tmp_path / ".fix-compile").exists()
    (tmp_path / "m.py").write_text("a = slow()\n")
    _, out, _ = tool("--backup", "--backup-dir", "my backups", "m.py")
    assert out.endswith("fix-compile restore --backup-dir 'my backups' 0001\n")
    assert tool("restore", "--backup-dir", "my backups")[0] == 0
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\nbackup-dir = 'kept'\n")
    assert tool("m.py")[1].endswith("fix-compile restore 0001\n")
    assert (tmp_path / "kept/runs/0001").is_dir()
    assert tool("restore")[0] == 0


@pytest.mark.parametrize("word", ["restore", "forget", "check", "fix"])
def test_originals_that_may_not_be_read(tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    tool("m.py")
    (tmp_path / "m.py").write_text("slow()\n")
    true = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        if folder.name == "runs":
            raise PermissionError(13, "Permission denied", str(folder))
        return true(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    status, _, err = tool(word, *(["."] if word in {"check", "fix"} else []))
    told = f"fix-compile {word}: error: {tmp_path}/.fix-compile/runs cannot be read: permission denied"
    assert (status, err.splitlines()[0]) == (2, told)
    assert err.count("\n") == 1
    assert (tmp_path / "m.py").read_text() == "slow()\n"


@pytest.mark.parametrize("called", [[str(ROOT / "fix_compile.py")], ["-m", "fix_compile"]])
@pytest.mark.parametrize("arguments", [["check"], ["restore"]])
def test_a_working_folder_that_is_gone(tmp_path: Path, called: list[str], arguments: list[str]) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir ../gone && exec "$@"', "sh", sys.executable, *called, *arguments],
        cwd=tmp_path / "gone",
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f" {arguments[0]}: error: the working folder is not there any more\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("called", "told"), [("/my tools/fix_compile.py", "python '/my tools/fix_compile.py'"), ("fc", "fix-compile")]
)
def test_calls_are_suggested_as_they_are_typed(
    tool: Run, monkeypatch: pytest.MonkeyPatch, called: str, told: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert f"; to put the originals back: {told} restore 0001\n" in tool("m.py")[1]
    assert tool("check", "--select", "zzz")[2].startswith(f"{told} check: error: ")
    assert tool("--help")[1].startswith(f"Usage: {told} [OPTIONS] [PATH]...")


@pytest.mark.parametrize("word", ["test", "diagnose"])
def test_a_report_shows_the_call_as_it_is_typed(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    seen: list[Sequence[str]] = []
    patching, diagnosing = (importlib.import_module(f"patcher.cli.{name}") for name in ("patching", "diagnosing"))
    monkeypatch.setattr(patching, "test", lambda *given: seen.append(given[3]) or calls.Told(0))
    monkeypatch.setattr(diagnosing, "report", lambda *given: seen.append(given[2].command.split()) or calls.Told(0))
    spelled = SimpleNamespace(name="fix_compile")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spelled)
    monkeypatch.setattr(sys, "argv", ["fix_compile", word, "m.py"])
    assert tool(word, "--case", "case.py", "m.py")[0] == 0
    assert list(seen[0]) == ["python", "-m", "fix_compile", word, "m.py"]


def test_dry_run(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("(\n")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    status, out, err = tool("--dry-run", ".")
    assert status == 2
    assert out == ("--- a/m.py\n+++ b/m.py\n@@ -1,3 +1,3 @@\n-a = slow()\n+a = fast()\n b = sloppy()\n c = stuck()\n")
    assert "bad.py: error: line 1: syntax error" in err
    assert "3 findings: 1 fixable, 1 unsafe, 1 without a fix in 1 file; 1 path could not be handled\n" in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert tool("--dry-run", "clean.py") == (0, "", f"no findings in 1 file\n{NOT_RUN}")
    assert tool("--dry-run", "--unsafe", "-q", "m.py")[1].count("+") == 6


@pytest.mark.parametrize("paths", [(), (".."), ("../m.py",), ("../m.py", "n.py")])
def test_a_diff_from_below(tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: tuple[str, ...]) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/n.py").write_text("slow()\n")
    monkeypatch.chdir(tmp_path / "deep")
    _, out, err = tool("diff", *([paths] if isinstance(paths, str) else paths))
    assert "--- a/m.py\n+++ b/m.py\n" in out
    assert ("--- a/deep/n.py\n" in out) is (paths != ("../m.py",))
    assert f"the paths of this diff start in {tmp_path}: apply it there\n" in err
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=out.encode(), check=True, capture_output=True)
    assert (tmp_path / "m.py").read_text().startswith("a = fast()\n")
    _, out, err = tool("diff", "-q", "n.py")
    assert ("--- a/n.py" in out, "start in" in err) == (paths == ("../m.py",), False)


def test_a_diff_of_folders_that_no_project_is_around(
    tool: Run, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path_factory.mktemp("given")
    for name in ("one", "two"):
        (given / name).mkdir()
        (given / name / "m.py").write_text("slow()\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    _, out, err = tool("diff", str(given))
    assert "--- a/one/m.py\n" in out
    assert "--- a/two/m.py\n" in out
    assert f"the paths of this diff start in {given}: apply it there\n" in err


def test_a_piped_diff_applies(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/crlf é.py").write_bytes(b"# coding: latin-1\r\nx = slow()  # \xe9")
    (tmp_path / "link.py").symlink_to("sub/crlf é.py")
    diff = subprocess.run(command("--dry-run", "."), cwd=tmp_path, env=environment(), capture_output=True).stdout
    subprocess.run(["patch", "-p1", "--binary"], cwd=tmp_path, input=diff, check=True, capture_output=True)
    patched = [path.read_bytes() for path in (tmp_path / "m.py", tmp_path / "sub/crlf é.py")]
    assert patched[1] == b"# coding: latin-1\r\nx = fast()  # \xe9"
    assert (tmp_path / "link.py").is_symlink()
    subprocess.run(["patch", "-R", "-p1", "--binary"], cwd=tmp_path, input=diff, check=True, capture_output=True)
    assert tool(".")[0] == 0
    assert [path.read_bytes() for path in (tmp_path / "m.py", tmp_path / "sub/crlf é.py")] == patched


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\r\n    a = 1\n    b = slow()\n", "def f():\r\n    a = 1\n    b = fast()\n"),
        ("def f():\n    a = 1\r\n    b = slow()\r\n", "def f():\n    a = 1\r\n    b = fast()\r\n"),
        ("def f():\n    a = 1\r\n    b = slow()", "def f():\n    a = 1\r\n    b = fast()"),
        ("\fdef f():\n    a = slow()\n\f\n\fx = 1\n", "\fdef f():\n    a = fast()\n\f\n\fx = 1\n"),
        ("class A:\n    x = slow()\n\f\n    y = 1\n", "class A:\n    x = fast()\n\f\n    y = 1\n"),
        ("a = 1\n\fb = slow()\n", "a = 1\n\fb = fast()\n"),
        ("a = 1\r\nb = '\f', slow()\n", "a = 1\r\nb = '\f', fast()\n"),
        ("\fa, b = 'é', slow()\n", "\fa, b = 'é', fast()\n"),
        ("class A:\n    x = 1\n  \fb = slow()\n", "class A:\n    x = 1\n  \fb = fast()\n"),
    ],
)
def test_endings_and_form_feeds_of_other_lines_stay(tool: Run, tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "m.py").write_bytes(before.encode())
    assert tool("fix", "m.py")[0] == 0
    assert (tmp_path / "m.py").read_bytes() == after.encode()


def test_verify_only(tool: Run, tmp_path: Path) -> None:
    status, out, err = tool("--verify-only", ".")
    assert (status, err) == (1, "")
    assert out.startswith("m.py:1:5: FC901 [safe fix] slow call\nNotes")
    assert "\n  m.py:2:5: FC901 [unsafe fix] sloppy call -- assumes: nobody looks\n" in out
    assert not (tmp_path / ".fix-compile").exists()
    tool(".")
    assert tool("--verify-only", ".")[0] == 0
    assert tool("--verify-only", "--unsafe", ".")[0] == 1
    (tmp_path / "m.py").write_text("c = stuck()\n")
    assert "m.py: altered since run 0001 patched it (edited)\n" in tool("--verify-only", ".")[1]
    assert tool("--verify-only", "clean.py")[0] == 0
    assert tool("--verify-only", ".", "missing.py")[0] == 2


WORDS = [
    ("check", ("--verify-only",)),
    ("verify", ("--verify-only",)),
    ("diff", ("--dry-run",)),
    ("fix", ("--yes",)),
    ("fix", ()),
    ("test", ("--test",)),
]


@pytest.mark.parametrize(("word", "flags"), WORDS)
def test_words_are_the_same_as_flags(tool: Run, tmp_path: Path, word: str, flags: tuple[str, ...]) -> None:
    before = (tmp_path / "m.py").read_bytes()
    said = tool(word, "m.py")
    assert ((tmp_path / "m.py").read_bytes() == before) is (word != "fix")
    (tmp_path / "m.py").write_bytes(before)
    spelled = tool(*flags, "m.py")
    assert (said[0], said[1].replace("0001", "0002")) == spelled[:2]
    assert said[2].replace(f"fix-compile {word}", "fix-compile") == spelled[2]


@pytest.mark.parametrize(("word", "flags"), [*WORDS, ("prove", ("--prove",))])
@pytest.mark.parametrize("extra", [(), ("clean.py", "m.py")])
def test_nothing_is_written_when_a_path_is_missing(
    tool: Run, tmp_path: Path, word: str, flags: tuple[str, ...], extra: tuple[str, ...]
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    how = ("--case", "case.py") if word in {"test", "prove"} else ()
    for arguments in ((word, *how, *extra, "nowhere"), (*flags, *how, "nowhere", *extra), (*flags, *how, "nope", word)):
        status, _, err = tool(*arguments)
        assert status == 2
        assert "error: no such file or folder" in err
        assert ("nothing was changed" in err) is (word not in {"check", "verify", "diff"})
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.py")} == before
        assert not (tmp_path / ".fix-compile").exists()


def test_a_word_that_is_misspelled_or_comes_late(tool: Run) -> None:
    assert tool("chek", "m.py")[2] == (
        "chek: error: no such file or folder (did you mean 'check'?)\nnothing was changed\n"
    )
    assert "'check' must come first" in tool("m.py", "check")[2]
    assert "did you mean" not in tool("zzz", "m.py")[2]


@pytest.mark.parametrize("word", ["check", "verify", "diff", "fix"])
def test_a_word_without_a_path_means_the_project(
    tool: Run, tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    text = (tmp_path / "m.py").read_text()
    status, out, _ = tool(word)
    assert status == (0 if word in ("diff", "fix") else 1)
    assert word == "fix" or "m.py" in out
    assert ((tmp_path / "m.py").read_text() == text) is (word != "fix")


@pytest.mark.parametrize("word", ["test", "diagnose"])
def test_what_runs_needs_a_case_and_no_path(tool: Run, word: str) -> None:
    assert "no case is given" in tool(word)[2]


@pytest.mark.parametrize("word", ["optimize", "prove", "tune"])
def test_what_searches_needs_a_program_or_a_path(tool: Run, word: str) -> None:
    status, _, err = tool(word)
    assert (status, f"give your program behind --: fix-compile {word} -- python train.py" in err) == (2, True)
    assert f"{word} measures in one --mode" in tool(word, "m.py", "--mode", "default", "--mode", "reduce-overhead")[2]


def test_options_of_diagnose_that_search_are_the_words() -> None:
    assert split(["diagnose", "--prove", "-q", "m.py"]) == ("prove", ["-q", "m.py"])
    assert split(["--prove", "m.py"]) == split(["prove", "m.py"])
    assert split(["diagnose", "m.py", "--tune"]) == ("tune", ["m.py"])
    assert split(["diagnose", "--prove", "--tune", "m.py"]) == ("optimize", ["m.py"])
    assert split(["tune", "--", "python", "a.py", "--prove"]) == ("tune", ["--", "python", "a.py", "--prove"])
    assert split(["fix", "m.py"]) == ("fix", ["--yes", "m.py"])


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 0), (b"\n", 0), (b"\x04", 130), (b"\x03", 130)])
def test_on_a_terminal_a_question_is_asked(tmp_path: Path, answer: bytes, status: int) -> None:
    (tmp_path / "m.py").write_text("slow()\n")
    ended, seen = conversation(tmp_path, "m.py", question=b"? [y/N]: ", answer=answer)
    assert ended == status
    assert b"-slow()" in seen
    assert b"Change this file (the originals are saved first)? [y/N]: " in seen
    assert (tmp_path / "m.py").read_text() == ("fast()\n" if answer == b"y\n" else "slow()\n")
    assert (b"nothing was changed" in seen) is (answer != b"y\n")


@pytest.mark.parametrize(
    "arguments", [("fix", "m.py"), ("--yes", "m.py"), ("m.py", "-y"), ("--format", "json", "m.py")]
)
def test_no_question_is_asked_of_who_has_said_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "m.py").write_text("slow()\n")
    ended, seen = conversation(tmp_path, *arguments)
    assert (ended, b"[y/N]" in seen) == (0, False)
    assert (tmp_path / "m.py").read_text() == "fast()\n"


def test_no_question_where_nothing_would_change(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("stuck()\n")
    assert b"[y/N]" not in conversation(tmp_path, "m.py")[1]


def test_results_are_kept_outside_of_the_tree(tool: Run, tmp_path: Path) -> None:
    folder, before = default_folder(), sorted(tmp_path.rglob("*"))
    told = tool("--verify-only", "--no-cache", ".")
    assert not folder.exists()
    assert tool("--verify-only", ".") == tool("--verify-only", ".") == told
    assert {file.suffix for file in folder.iterdir()} == {".results", ".summaries"}
    assert sorted(tmp_path.rglob("*")) == before


def test_suppression(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("a = slow()  # fix-compile: ignore[slow-call]  on purpose\n")
    assert tool("--verify-only", "m.py")[:2] == (0, f"no findings in 1 file; 1 suppressed\n{NOT_RUN}")


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("ignore[FC991]", "FC001 [no fix] `ignore[FC991]` names no rule (did you mean FC901?)"),
        ("ignore[FC504]", "FC001 [no fix] `ignore[FC504]` names no rule (it was removed)"),
        ("ignore[slow-cal]", "FC001 [no fix] `ignore[slow-cal]` names no rule (did you mean slow-call?)"),
        ("ignore[FC902]", "FC002 [no fix] `ignore[FC902]` silences nothing here"),
        ("ignore[FC901, FC902]", "FC002 [no fix] `ignore[FC902]` silences nothing here"),
    ],
)
def test_comments_that_do_nothing(tool: Run, tmp_path: Path, comment: str, told: str) -> None:
    (tmp_path / "m.py").write_text(f"a = 'é', slow()  # fix-compile: {comment}\n")
    out = tool("check", "m.py")[1]
    assert f"  m.py:1:18: {told}\n" in out
    assert out.partition("more of a rule: ")[0].count("FC00") == 1
    assert "FC00" not in tool("check", "--ignore", "FC0", "m.py")[1]
    assert "FC002" not in tool("check", "--select", "FC901,FC0", "m.py")[1]  # FC902 has not been asked


def test_a_comment_below_what_is_no_line(tool: Run, tmp_path: Path) -> None:
    """Some characters end a line for str.splitlines, and none for Python."""
    (tmp_path / "m.py").write_text("a = '\u2028\x0c'\nb = 1  # fix-compile: ignore[FC901]\n", encoding="utf-8")
    assert "  m.py:2:8: FC002 [no fix] `ignore[FC901]` silences nothing here\n" in tool("check", "m.py")[1]


def test_a_comment_for_all_rules(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("a = slow()  # fix-compile: ignore\nb = 1  # fix-compile: ignore\n")
    assert "  m.py:2:8: FC002 [no fix] `ignore` silences nothing here\n" in tool("check", "m.py")[1]
    assert "m.py:1" not in tool("check", "m.py")[1]
    assert "FC002" not in tool("check", "--ignore", "FC902", "m.py")[1]
    (tmp_path / "m.py").write_text("b = 1  # fix-compile: ignore[FC901, FC002]  for later\n")
    assert tool("check", "m.py")[1].startswith("no findings in 1 file; 1 suppressed\n")


GUARD = """import torch
class M(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            raise ValueError("too large")
        return x
"""


@pytest.mark.parametrize("how", ["--ignore", "comment", "per-file-ignores", "select"])
def test_what_is_ignored_does_not_come_back_under_another_rule(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    comment = "  # fix-compile: ignore[FC102]" if how == "comment" else ""
    (tmp_path / "m.py").write_text(GUARD.replace("> 0:", f"> 0:{comment}"))
    if how == "per-file-ignores":
        (tmp_path / "pyproject.toml").write_text("[tool.fix-compile.per-file-ignores]\n'm.py' = ['FC102']\n")
    asked = {"--ignore": ("--ignore", "FC102"), "select": ("--select", "FC1", "--ignore", "FC102")}.get(how, ())
    assert tool("check", *asked, "m.py")[1].startswith("no findings in 1 file")
    if not asked:
        (tmp_path / "pyproject.toml").unlink(missing_ok=True)
        (tmp_path / "m.py").write_text(GUARD)
        assert "m.py:4:9: FC102" in tool("check", "m.py")[1]


COST = "when it fails on a GPU, the process cannot use that GPU again"
ROWS = "import torch\nimport torch.nn as nn\n" + next(
    e.before for r in load_rules() if r.code == "FC401" for e in r.invalid if e.after and "_assert_async" in e.after
)
ASSERTED = GUARD.replace("if x", "assert x").replace(":\n            raise ValueError(", ", str(")


@pytest.mark.parametrize("text", [GUARD, ASSERTED, ROWS])
def test_what_an_assertion_on_the_device_costs(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    (tmp_path / "m.py").write_text(text)
    before = tool("check", "m.py")
    assert (before[0], COST in before[1]) == (1, True)
    assert COST in tool("check", "--format", "github", "m.py")[1]
    status, out, _ = tool("check", "--no-device-asserts", "m.py")
    assert status == 0
    assert "[unsafe fix]" in out
    assert "-- assumes: no check fails on a GPU, or the process may end with it (device-asserts = false)" in out
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\ndevice-asserts = false\n")
    assert tool("fix", "m.py")[0] == 0
    assert (tmp_path / "m.py").read_text() == text
    assert tool("check", "--device-asserts", "m.py") == before
    assert COST in tool("fix", "--unsafe", "m.py")[1]
    assert (tmp_path / "m.py").read_text() != text


OUTSIDE = """import torch


class Decoder:
    def step(self, x):
        return x * x.max().item()

    def __call__(self, x):
        return self.step(x)


def decode(x):
    return x + x.sum().item()
"""


@pytest.mark.parametrize(
    ("named", "lines"),
    [("package.model:decode", [13]), ("package.model:Decoder.step", [6]), ("package.model:Decoder", [6])],
)
def test_what_code_elsewhere_compiles_is_looked_at(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, lines: list[int]
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from package.model import decode\n")
    (tmp_path / "package" / "model.py").write_text(OUTSIDE)
    assert tool("check", "package")[1].startswith("no findings")

    def found(*options: str) -> list[int]:
        told = json.loads(tool("check", "--select", "FC201", *options, "--format", "json", "package")[1])
        return [f["line"] for file in told["files"] for f in file["findings"]]

    assert found("--compiled", named) == lines
    assert found("--compiled", "package:decode") == [13]  # by the name that the package gives it
    (tmp_path / "pyproject.toml").write_text(f'[tool.fix-compile]\ncompiled = ["{named}", "elsewhere:f"]\n')
    assert found() == lines
    assert found("--compiled", "package.model:decode") == sorted({*lines, 13})


def test_what_is_compiled_elsewhere_is_a_function(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(OUTSIDE)
    assert "--compiled m.decode: write it as MODULE:FUNCTION" in tool("check", "--compiled", "m.decode", "m.py")[2]
    status, _, err = tool("check", "--compiled", "m:decade", "m.py")
    assert (status, "compiled: there is no function m:decade" in err) == (2, True)
    (tmp_path / "pyproject.toml").write_text('[tool.fix-compile]\ncompiled = ["m"]\n')
    assert 'must be a list of "module:function", not' in tool("check", "m.py")[2]


LONG = """import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        self.trained_length = length
        self.register_buffer("rates", torch.ones(4))

    @torch.no_grad()
    def forward(self, places):
        furthest_place = places.max() + 1
        if furthest_place > self.trained_length:
            rates = self.rates / (furthest_place / self.trained_length)
        else:
            rates = self.rates
        return places * rates
"""


@pytest.mark.parametrize("limit", [72, 79, 119, 140, None])
def test_new_lines_are_as_long_as_the_project_lets_them_be(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "net.py"
    file.write_text(LONG + f"# {'=' * 116}\n" * 60)  # the longest line has 118 characters
    (tmp_path / "pyproject.toml").write_text(f"[tool.ruff]\nline-length = {limit}\n" if limit else "")
    assert tool("fix", "src")[0] == 0
    new = [line for line in file.read_text().splitlines() if line not in LONG.splitlines() and "=" * 9 not in line]
    assert (len(new) == 1) is (limit == 140)
    assert max(map(len, new)) <= (limit or 118)


def test_per_file_ignores(tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/a.py").write_text("slow()\nodd\n")
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile.per-file-ignores]\n'old/*' = ['slow-call']\n")
    for where, name in ((tmp_path, "old"), (tmp_path / "old", "a.py")):
        monkeypatch.chdir(where)
        out = tool("check", name)[1]
        assert "FC901" not in out
        assert "FC902" in out
        assert "1 suppressed" in out
    monkeypatch.chdir(tmp_path)
    assert "FC901" in tool("check", "m.py")[1]
    for pattern, silent in (("old", True), ("old/", True), ("ol", False), (tmp_path.name, False)):
        (tmp_path / "pyproject.toml").write_text(f"[tool.fix-compile.per-file-ignores]\n'{pattern}' = ['FC901']\n")
        assert ("FC901" not in tool("check", "old")[1]) is silent
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile.per-file-ignores]\n'old/*' = ['FC991']\n")
    assert (
        "per-file-ignores in [tool.fix-compile]: no rule is called 'FC991' (did you mean 'FC901'?)"
        in tool("check", "m.py")[2]
    )


def test_severities(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("import torch.nn as nn\nclass M(nn.Module):\n    def forward(self, x):\n"
        "        slow()\n        for _ in x:\n            slow()\n        if not x:\n            slow()\n"
        "            raise ValueError\n        return x\n")  # fmt: skip
    lines = {word: [4, 6, 8] for word in ("high,medium,low", "FC9")}
    lines |= {"high": [6], "medium": [4], "low": [8], "FC902": [], "FC901,high": [6]}
    for word, found in lines.items():
        told = json.loads(tool("check", "--select", word, "--format", "json", "m.py")[1])
        assert [f["line"] for file in told["files"] for f in file["findings"]] == sorted(found, key=[6, 4, 8].index)
    told = json.loads(tool("check", "--ignore", "low,FC902", "--format", "json", "m.py")[1])
    assert [f["severity"] for f in told["files"][0]["findings"]] == ["high", "medium"]
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\nignore = ['FC901', 'low']\n")
    assert tool("check", "--ignore", "medium", "m.py")[1].startswith("no findings")
    assert "m.py:8" in tool("check", "--ignore", "FC902,medium", "m.py")[1]
    tool("fix", "--ignore", "FC902", "--select", "high", "m.py")
    assert (tmp_path / "m.py").read_text().count("slow()") == 2


def test_formats(tool: Run, tmp_path: Path) -> None:
    status, out, _ = tool("--verify-only", "--format", "json", ".")
    document = json.loads(out)
    assert (status, document["schema"], document["call"]) == (1, 1, "verify-only")
    assert [finding["status"] for finding in document["files"][0]["findings"]] == ["fixable", "unsafe", "no-fix"]
    assert document["files"][0]["changed"] is True
    assert "diff" in json.loads(tool("--dry-run", "--format", "json", ".")[1])["files"][0]
    assert tool("--verify-only", "--format", "github", ".")[1].startswith("::warning file=m.py,line=1,")
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\nformat = 'json'\n")
    document = json.loads(tool(".")[1])
    assert document["run"] == {"id": "0001", "store": ".fix-compile"}
    assert document["files"][0]["changed"]
    assert tool("--format", "text", ".")[1].startswith("2 findings")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-", "m.py"), "- (standard input) goes alone"),
        (("--selct", "FC901", "."), "--select"),
        (("--select", "FC801", "."), "did you mean 'FC901'"),
        (("--select", "fc504", "."), "no rule is called 'fc504' (it was removed)"),
        (("--ignore", "size-keyed-cache", "."), "no rule is called 'size-keyed-cache' (it was removed)"),
        (("rules", "FC610"), "there is no rule 'FC610' (it was removed)"),
        (("--ignore", "zzz", "."), "no rule is called 'zzz' (fix-compile rules lists them)"),
        (("--strategy", "slow=slower", "."), "no strategy 'slower'"),
        (("--target-torch", "2", "."), "give a PyTorch version"),
        (("--format", "xml", "."), "'xml' is not one of"),
        (("--dry-run", "--verify-only", "."), "exclude each other"),
        (("fix", "--strict", "."), "--strict goes with --verify-only"),
        (("restore", "--force", "--keep-edits"), "exclude each other"),
        (("forget",), "no runs are recorded in"),
        (("help", "m.py"), "help: error: no such file or folder"),
        (("-j", "0", "."), "0 is not in the range"),
        (("--quiet", "restore"), "the word 'restore' must come first"),
        (("rules", "FC900"), "did you mean 'FC90"),
        (("restore",), "no runs are recorded in"),
        (("missing.py",), "missing.py: error: no such file or folder"),
        (("--backup-dir", "setup.cfg", "m.py"), "cannot be written: "),
        (("--case", "case.py", "m.py"), "--case goes with --test"),
        (("--test", "m.py"), "no case is given and none is configured"),
        (("--test", "--case", "caes", "m.py"), "no case is called 'caes' (did you mean 'case'"),
        (("--test", "--case", "m.py", "m.py"), "m.py: "),
        (("--test", "--verify-only", "m.py"), "--verify-only and --test exclude each other"),
        (("--test", "--format", "github", "m.py"), "--format github does not go with --test"),
        (("--format", "markdown", "m.py"), "--format markdown goes with --test"),
        (("--test", "--mode", "fast", "--case", "case.py", "m.py"), "'fast' is not one of"),
        (("--test", "--tolerance", "0", "--case", "case.py", "m.py"), "0 is not in the range"),
        (("--test", "--package", "nosuch", "--case", "case.py"), "no package 'nosuch' is installed"),
        (("--against", "HEAD", "m.py"), "--against goes with --test"),
        (("--test", "--against", "HEAD", "--patch", "a.diff", "m.py"), "--patch and --against exclude each other"),
        (("judge", "m.py"), "--patch DIFF (-: standard input) or --against REV says what is to be judged"),
        (("--test", "--against", "HEAD", "--case", "case.py", "m.py"), "--against: m.py is in no git repository"),
        (("--test", "--patch", "a.diff", "--case", "case.py", "m.py"), "--patch a.diff: cannot be read: no such file"),
        (("--test", "--patch", "m.py", "--case", "case.py", "m.py"), "--patch: m.py: is no unified diff"),
    ],
)
def test_mistakes_are_told_in_one_line(tool: Run, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = tool(*arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in out + err


def test_measuring_what_needs_no_patch(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = toy("small", oc={"breaks": [{"where": "m.py:3", "reason": "a print", "count": 2}], "counts": {"breaks": 2}})
    monkeypatch.setattr("patcher.measuring.measure._document", lambda *anything: document(seen, overlay=[]))
    measure = ("--test", "--case", "case.py")
    status, out, err = tool(*measure, "clean.py")
    assert (status, err) == (0, "")
    assert "small: 2 breaks, 3 recompiles\n" in out
    assert "original 2x `m.py:3`: `a print`\n" in out
    assert out.endswith("nothing to patch: the case ran as it is; diagnose tells why\n")
    told = json.loads(tool(*measure, "--format", "json", "clean.py")[1])
    assert (told["verdicts"], told["equivalent"], told["results"]["cases"][0]["name"]) == ([], True, "small")
    assert tool(*measure, "gone.py") == (2, "", "gone.py: error: no such file or folder\nnothing was changed\n")


DIFF = """--- a/clean.py
+++ b/clean.py
@@ -0,0 +1 @@
+x = 1
--- a/case.py
+++ b/case.py
@@ -1 +1,2 @@
+x = 1
 {}
--- a/notes.txt
+++ b/notes.txt
@@ -0,0 +1 @@
+x
"""


@pytest.mark.parametrize(("more", "status"), [({}, 0), ({"pc": {"counts": {"limit_hits": 9}}}, 1)])
def test_a_diff_is_judged_and_nothing_is_written(
    tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Any, status: int
) -> None:
    (tmp_path / "clean.py").write_bytes(b"")
    first = (tmp_path / "case.py").read_text().splitlines()[0]
    (tmp_path / "change.diff").write_text(DIFF.format(first))
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    measured: list[Any] = []

    def seen(outcome: Any, request: Any, options: Any, progress: Any) -> Any:
        measured.append((outcome.results, options))
        return document(toy("small", **more))

    monkeypatch.setattr("patcher.measuring.measure._document", seen)
    ended, out, err = tool("test", "--patch", "change.diff", "--case", "case.py", "m.py")
    assert (ended, out.splitlines()[-1]) == (
        status, "equivalent; nothing was changed" if not status else "not equivalent: nothing was changed"
    )  # fmt: skip
    assert err.splitlines()[-3:] == [
        "original: the files on disk; patched: these with change.diff",
        "no Python source, so the same on both sides: notes.txt",
        "case.py: a case is the same on both sides: as it is on disk",
    ]
    (((result,), options),) = measured
    assert (result.path, result.after, options.promise, options.on_disk) == (
        "clean.py", b"x = 1\n", "tolerance", "original"
    )  # fmt: skip
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before
    told = json.loads(tool("test", "--patch", "change.diff", "--case", "case.py", "--format", "json", "m.py")[1])
    assert told["equivalent"] is (not status)


@pytest.mark.parametrize("what", ["clean.py", "m.py"])
@pytest.mark.parametrize("wide", [True, False])
def test_a_case_that_fails_is_told_in_a_line_and_a_hint(
    tool: Run, monkeypatch: pytest.MonkeyPatch, what: str, wide: bool
) -> None:
    message = "call 1 raised TypeError: Net.forward() takes 2 positional arguments but 3 were given (case.py:9)"
    none = {"status": "skipped", "message": "", "figures": None}
    seen = toy(
        "small", oe={"status": "case-error", "message": message, "tail": ["Traceback"]}, pe=none, oc=none, pc=none
    )
    monkeypatch.setattr("patcher.measuring.measure._document", lambda *anything: document(seen))
    monkeypatch.setattr("patcher.measuring.measure_options.sys.stdout.isatty", lambda: not wide, raising=False)
    status, out, _ = tool("test", "--case", "case.py", what)
    assert status == 2
    assert "TypeError: Net.forward() takes 2 positional" in " ".join(out.split())
    assert "hint: a call of one tensor is written ((x,), {})" in " ".join(out.split())
    assert "|" not in out
    assert "Traceback" not in out
    assert len(out.splitlines()) < 10


def test_a_report_of_80_columns(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks = [{"where": "m.py:3", "reason": "a print that is told at some length " * 4, "count": 2}]
    monkeypatch.setattr(
        "patcher.measuring.measure._document", lambda *anything: document(toy("small", oc={"breaks": breaks}))
    )
    monkeypatch.setattr("patcher.measuring.measure_options.sys.stdout.isatty", lambda: True, raising=False)
    assert " | compiled before | " in tool("test", "--wide", "--case", "case.py", "m.py", "--dry-run")[1]
    out = tool("test", "--case", "case.py", "m.py")[1]
    assert max(map(len, out.splitlines())) <= 80
    assert "  compiled before  10.0\n" in out
    assert "    - removed 2x `m.py:3`: `a print that" in out


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_diagnosis_of_80_columns(tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    asked = ("diagnose", "--case", "case.py", "m.py")
    monkeypatch.setattr("patcher.diagnose.call.need_torch", lambda python: None)
    monkeypatch.setattr("patcher.diagnose.call.diagnose", lambda *anything: Diagnosed(SAMPLES[name]()))
    page = tool(*asked)[1]
    assert page == diagnosis_markdown(SAMPLES[name]())
    monkeypatch.setattr(sys.modules["patcher.cli.diagnosing"].sys.stdout, "isatty", lambda: True, raising=False)
    assert tool(*asked, "--wide")[1] == tool(*asked, "--format", "markdown")[1] == page
    tool(*asked, "-o", "report.md")
    assert (tmp_path / "report.md").read_text() == page
    out = tool(*asked)[1]
    command = "fix-compile diagnose"  # with a path that cannot be parted
    assert [line for line in out.splitlines() if len(line) > 80 and "onerror" not in line] == []
    assert (command in out, "```" in out, "**" in out) == (command in page, False, False)
    kept = "".join(out.split())
    words = {word for word in re.findall(r"\w{3,}", page.replace("\\", "")) if word not in kept}
    assert words <= {"text", "bash", "diff", "python"}  # what a fence says


def test_what_is_compiled_without_a_compiler_is_said_at_the_top(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "patcher.measuring.measure._document", lambda *anything: document(toy("small"), backend="aot_eager")
    )
    monkeypatch.setattr("patcher.measuring.measure.shutil.which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    first = "No C++ compiler (g++, clang++, or CXX) with Python's headers: compiled with\naot_eager, so breaks"
    for what in ("m.py", "clean.py"):
        assert tool("test", "--dry-run", "--case", "case.py", what)[1].startswith(first)
    assert "No C++" not in tool("test", "--backend", "eager", "--dry-run", "--case", "case.py", "m.py")[1]
    status, out, err = tool("test", "--case", "case.py", "m.py")
    assert (status, out) == (2, ""), "nothing is written on the word of code that was not compiled"
    assert "there is no C++ compiler" in err
    assert "install one" in err


@pytest.mark.parametrize(("named", "backend"), [("/nope", "aot_eager"), ("g++ -O1", "inductor"), ("", "inductor")])
def test_a_compiler_that_is_named_has_to_be_there(monkeypatch: pytest.MonkeyPatch, named: str, backend: str) -> None:
    usual = {"nvidia-smi": None, "/nope": None}
    monkeypatch.setattr("patcher.measuring.measure.shutil.which", lambda name: usual.get(name, f"/bin/{name}"))
    monkeypatch.setenv("CXX", named)
    done = subprocess.CompletedProcess([], 0, stdout="True\n")
    monkeypatch.setattr("patcher.measuring.measure.subprocess.run", lambda *args, **how: done)
    assert measure._standard_backend(measure.Request((), sys.executable, {})) == backend


def test_measuring_without_torch(tool: Run, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')  # without what is installed
    python.chmod(0o755)
    status, out, err = tool("--test", "--case", "case.py", "--python", str(python), "m.py")
    assert (status, out) == (2, "")
    assert f"{python} has no torch" in err
    assert (tmp_path / "m.py").read_text().startswith("a = slow()")


def test_a_read_only_file_is_not_measured_for_nothing(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").chmod(0o444)
    told = tool("--test", "--case", "case.py", "m.py")
    assert told == (2, "", "m.py: error: is read-only, left alone; nothing was measured\n")


def test_a_report_is_kept_when_the_originals_cannot_be_saved(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.measuring.measure._document", lambda *anything: document(toy("small")))
    status, out, err = tool("--test", "--case", "case.py", "--backup-dir", "setup.cfg", "m.py")
    assert (status, "small: equivalent" in out, "equivalent, but not all was written" in out) == (2, True, True)
    assert "error: the backup folder" in err


def test_bad_configuration(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\nselekt = []\n")
    status, _, err = tool(".")
    assert status == 2
    assert err == (
        f"fix-compile: error: {tmp_path}/pyproject.toml: unknown key 'selekt' in [tool.fix-compile] "
        "(did you mean 'select'?)\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.fix_compile]", "[tool.fix_compile]"),
        ("[tool.fixcompile]", "[tool.fixcompile]"),
        ("[tool.FIX-Compile.cases]", "[tool.FIX-Compile]"),
        ("[fix-compile]", "[fix-compile]"),
        ("[tool.fix-compile]\n[tool.fix_compile]", "[tool.fix_compile]"),
        ("[project]\nname = 'fix-compile'\n[tool.fix-compiler]", ""),
    ],
)
def test_a_table_that_is_not_ours_by_a_letter(tool: Run, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"{text}\nignore = ['FC901']\n")
    status, _, err = tool("check", ".")
    line = f"fix-compile check: error: {tmp_path}/pyproject.toml: {told} is not read: write [tool.fix-compile]\n"
    assert (status, err) == ((2, line) if told else (1, ""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select = ['zzz']", "select in [tool.fix-compile]: no rule is called 'zzz'"),
        ("ignore = ['FC801']", "ignore in [tool.fix-compile]: no rule is called 'FC801' (did you mean 'FC901'?)"),
        ("strategy = { slow = 'slower' }", "strategy in [tool.fix-compile]: slow=slower: no strategy 'slower'"),
        ("strategy = { slov = 'quick' }", "strategy in [tool.fix-compile]: slov=quick: no rule with strategies is"),
        ("target-torch = '1.9'", "target-torch in [tool.fix-compile]: 1.9: give a PyTorch version from 2.0"),
        ("per-file-ignores = { 'a.py' = ['zz'] }", "per-file-ignores in [tool.fix-compile]: no rule is called 'zz'"),
    ],
)
def test_a_setting_is_told_where_it_stands(tool: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.fix-compile]\n{text}\n")
    status, _, err = tool("check", ".")
    assert (status, err.startswith(f"fix-compile check: error: {message}")) == (2, True), err


def test_rules(tool: Run) -> None:
    status, out, _ = tool("rules")
    assert status == 0
    assert out.splitlines() == [
        "FC001  unknown-ignore  An ignore comment that lists a rule that does not exist.",
        "FC002  unused-ignore   An ignore comment that silences nothing.",
        "FC901  slow-call       A call of ``slow``.",
        "                       strategies: auto, quick",
        "FC902  odd-name        A name that is odd.",
    ]
    out = tool("rules", "fc901")[1]
    assert out.startswith("FC901 slow-call\n\nA call of ``slow``.\n\nWhat it does:\n    Calls ``fast``.\n")
    assert "--strategy slow=NAME, where NAME is auto, quick" in out
    assert "  before\n\n    x = slow()\n\n  after\n\n    x = fast()\n" in out


def test_rules_fit_80_columns(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    out = tool("rules")[1]
    assert max(map(len, out.splitlines())) <= 80
    assert all(f"\n{rule.code}  {rule.name} " in out for rule in load_rules())
    for rule in load_rules():
        told = tool("rules", rule.code)[1].partition("\nExample: ")[0]
        assert max(len(line) for line in told.splitlines() if not line.startswith("Its page: ")) <= 80, rule.code
        said = (type(rule).__doc__ or "").split()
        assert told.split()[2 : len(said) + 2] == said


def test_standard_input(tmp_path: Path) -> None:
    def piped(*arguments: str, data: bytes = b"# coding: latin-1\r\nx = slow()  # \xe9\r\n") -> tuple[int, bytes, str]:
        done = subprocess.run(command(*arguments), cwd=tmp_path, env=environment(), input=data, capture_output=True)
        return done.returncode, done.stdout, done.stderr.decode()

    for how in ((), ("fix",)):
        status, out, err = piped(*how, "-")
        assert (status, out) == (0, b"# coding: latin-1\r\nx = fast()  # \xe9\r\n")
        assert err.startswith("<stdin>:2:5: FC901 [fixed] slow call\n1 finding: 1 fixed")
    assert piped("fix", "-", data=b"x = 1\n")[:2] == (0, b"x = 1\n")
    assert piped("check", "-")[:2][0] == 1
    assert piped("check", "-")[1].startswith(b"<stdin>:2:5: FC901 [safe fix] slow call\n")
    assert b"\n+x = fast()  # \xe9\r\n" in piped("diff", "-")[1]
    status, out, err = piped("fix", "-", data=b"(\n")
    assert (status, out) == (2, b"")
    assert err.startswith("<stdin>: error: line 1: syntax error")
    assert "goes alone" in piped("fix", "-", "m.py")[2]
    assert "goes alone" in piped("test", "-")[2]
    assert list(tmp_path.iterdir()) == []


def test_syntax_of_a_newer_python(tool: Run, tmp_path: Path) -> None:
    """Such that no version which the tests run under can parse it."""
    (tmp_path / "new.py").write_text("x = 1\ny = t'{x}'\n" if sys.version_info < (3, 14) else "(")
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n")
    err = tool("check", "new.py", "broken.py")[2]
    here = f"(read as Python {sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info < (3, 14):
        assert f"{here}; this looks like 3.14: run fix-compile with that)" in err.splitlines()[0]
    assert err.splitlines()[1].endswith(f"{here})")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("type Row = list[int]", (3, 12)),
        ("def first[T](rows: list[T]) -> T: ...", (3, 12)),
        ("class Box[T]: ...", (3, 12)),
        ("async def first[T = int](rows): ...", (3, 13)),
        ("x = f'{names['a']}'", (3, 12)),
        ("x = t'{a}'", (3, 14)),
        ("except* ValueError:", (3, 11)),
        ("print 'x'", None),
        ("x = = 1", None),
        ("type = = 1", None),
        ("def f(x[0]): ...", None),
    ],
)
def test_what_a_line_needs(monkeypatch: pytest.MonkeyPatch, line: str, version: tuple[int, int] | None) -> None:
    monkeypatch.setattr("patcher.patching.share.sys.version_info", (3, 10, 0))
    assert needed(f"a = '\u2028'\n{line}\n", SyntaxError("invalid syntax", ("m.py", 2, 1, line))) == version
    monkeypatch.setattr("patcher.patching.share.sys.version_info", (3, 14, 0))
    assert needed(f"a = 1\n{line}\n", SyntaxError("invalid syntax", ("m.py", 2, 1, line))) is None


def test_other_text_files_are_passed_over(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Not Python, that is sure\n")
    (tmp_path / "weights.bin").write_bytes(b"\x00\xff")
    for name, text in (("net.ipynb", '{"cells": []}'), ("LICENSE", "MIT"), ("py.typed", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "script").write_text("#!/usr/bin/env python\nslow()\n")
    status, out, err = tool("check", "README.md", "weights.bin", "script", "clean.py")
    assert (status, "script:2:1: FC901" in out) == (1, True)
    assert err == "README.md: passed over, for it is no Python\nweights.bin: passed over, for it is no Python\n"
    for name in ("LICENSE", "py.typed"):
        assert tool("check", name)[2] == f"{name}: passed over, for it is no Python\nno Python files found\n"
    assert tool("check", "net.ipynb")[2] == f"{no_notebook('net.ipynb')}\nno Python files found\n"
    status, _, err = tool("fix", "README.md")
    assert (status, err) == (0, "README.md: passed over, for it is no Python\nno Python files found\n")
    assert tool("fix", "-q", "README.md")[2] == ""


def test_a_folder_that_is_called_rules(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/a.py").write_text("slow()\n")
    assert "\nFC901 " in tool("rules")[1]
    assert "rules/a.py" in tool("./rules")[1]


def test_help_and_version(tool: Run) -> None:
    assert tool("--version")[:2] == (0, f"fix-compile, version {VERSION}\n")
    status, out, _ = tool("--help")
    assert status == 0
    assert "  restore [RUN] " in out
    assert "--case" in tool("test", "--help")[1]
    assert not {"--tolerance", "--dry-run", "--backup"} & set(tool("check", "--help")[1].split())
    assert "RUN" in tool("restore", "--help")[1]


@pytest.mark.parametrize("word", ["", *SPELLED, *OTHERS])
def test_help_names_the_page_about_a_call(tool: Run, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    page = Path(tool(*filter(None, [word]), "--help")[1].rpartition("  More: ")[2].strip())
    assert page == ROOT / "docs" / f"{PAGES.get(word, 'tutorial')}.md"
    assert page.is_file()
    monkeypatch.chdir(ROOT)
    assert tool(*filter(None, [word]), "--help")[1].endswith(f"  More: {page.relative_to(ROOT)}\n")


def test_what_people_type_for_options(tool: Run, tmp_path: Path) -> None:
    assert tool("help") == tool("--help")
    assert tool("version") == tool("--version")
    (tmp_path / "help").mkdir()
    (tmp_path / "help/a.py").write_text("slow()\n")
    assert "help/a.py:1:1: FC901 [fixed]" in tool("help")[1]


def test_rules_of_a_family(tool: Run) -> None:
    assert [line.split()[0] for line in tool("rules", "fc0")[1].splitlines()] == ["FC001", "FC002"]
    assert tool("rules", "fc001")[1].startswith("FC001 unknown-ignore\n")


@pytest.mark.parametrize("code", ["FC001", "FC002", *(rule.code for rule in load_rules())])
def test_each_rule_has_a_page(tool: Run, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RULES", load_rules())
    status, out, _ = tool("rules", code)
    assert (status, out.startswith(f"{code} ")) == (0, True)
    page = (ROOT / "docs/rules" / f"{code}.md").read_text(encoding="utf-8")
    assert f"Its page: {ROOT / 'docs' / 'rules' / code}.md\n" in out
    words = " ".join(page.split())
    said = out.partition("What it does:")[2].partition("Why it breaks compilation:")[0]
    assert " ".join(said.split()) in words
    assert f"[{code}](rules/{code}.md)" in (ROOT / "docs/rules.md").read_text(encoding="utf-8")


def test_findings_lead_to_the_page_of_their_rule(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("slow()  # fix-compile: ignore[FC999]\nsloppy()\n")
    told = json.loads(tool("check", "--format", "json", "m.py")[1])["files"][0]["findings"]
    lead = [(item["explain"], item["page"]) for item in told]
    codes = ("FC901", "FC001", "FC901")  # a rule of another package has no page here
    assert lead == [(f"fix-compile rules {code}", "docs/rules/FC001.md" if code == "FC001" else "") for code in codes]
    assert tool("check", "--format", "github", "m.py")[1].count("fix-compile rules FC901") == 2
    assert "\nmore of a rule: fix-compile rules FC901\n" in tool("check", "m.py")[1]
    assert "more of a rule" not in tool("check", "clean.py")[1] + tool("check", "-q", "m.py")[1]


def test_a_check_names_the_next_step(tool: Run) -> None:
    step = "the changes: fix-compile diff m.py; to make them: fix-compile fix m.py\n"
    assert tool("check", "m.py")[1].endswith(step)
    assert tool("check")[1].endswith(step.replace("m.py", "."))
    assert step not in tool("check", "clean.py")[1] + tool("check", "-q", "m.py")[1]


def test_quiet(tool: Run, tmp_path: Path) -> None:
    assert tool("-q", ".") == (0, "m.py:1:5: FC901 [fixed] slow call\n", "")
    assert tool("restore", "-q") == (0, "", "")
    assert tool("--verify-only", "-q", ".") == (1, "m.py:1:5: FC901 [safe fix] slow call\n", "")


def test_no_python_files(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert tool("empty") == (0, "no findings in 0 files\n", "no Python files found\n")


def test_a_rule_that_crashes(tool: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("crash()\n")
    status, _, err = tool("m.py")
    assert status == 2
    assert "m.py:1: internal error in FC901, a bug in the package it comes from: " in err
    assert err.count("\n") == 1


def test_read_only_file_and_folder(tool: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text("slow()\n")
    (tmp_path / "a/x.py").chmod(0o400)
    (tmp_path / "b").chmod(0o500)
    try:
        status, out, err = tool(".")
    finally:
        (tmp_path / "b").chmod(0o700)
    assert status == 2
    assert err == "a/x.py: error: is read-only, left alone\nb/x.py: error: is in a read-only folder, left alone\n"
    assert "m.py:1:5: FC901 [fixed]" in out


def test_interrupted_while_writing(tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / f"x{number}.py").write_text("slow()\n")
    true = calls.backup.atomic.replace

    def replace(path: str, *rest: object) -> bool:
        if path == "x1.py":
            raise KeyboardInterrupt
        return true(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(calls.backup.atomic, "replace", replace)
    status, _, err = tool(".")
    assert status == 130
    assert err == "interrupted: 2 files were patched, 3 were not and are as they were\n"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert tool("restore")[0] == 0
    assert {(tmp_path / f"x{number}.py").read_text() for number in range(4)} == {"slow()\n"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_while_looking(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "setup.cfg").write_text("")
    for number in range(4):
        (tmp_path / f"x{number}.py").write_text("slow()\nlinger()\n")
    running = subprocess.Popen(
        command("-j", jobs, "."),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell in the background has it ignored
    )
    while not (tmp_path / "lingering").exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130
    assert err == b"interrupted; nothing was changed\n"
    assert not (tmp_path / ".fix-compile").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("word", ["check", "diff", "fix"])
def test_output_that_cannot_be_written(tmp_path: Path, word: str) -> None:
    (tmp_path / "m.py").write_text("slow()\n")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(word, "m.py"), cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.endswith(f"fix-compile {word}: error: the output cannot be written: no space left on device\n")
    assert "Traceback" not in done.stderr
    if word == "fix":
        assert process("restore", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(tmp_path: Path, closed: str) -> None:
    (tmp_path / "m.py").write_text("slow()\n")
    for arguments, status in ((("check",), 1), (("m.py",), 0)):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {closed}', "sh", *command(*arguments)],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert (tmp_path / "m.py").read_text() == "fast()\n"


def test_broken_pipe(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"x{number}.py").write_text("slow()\n" * 50)
    running = subprocess.Popen(
        command("--dry-run", "-j", "1", "."),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait() == 141


def terminal(cwd: Path, *arguments: str, **variables: str) -> bytes:
    """What is seen on a terminal."""
    return conversation(cwd, *arguments, **variables)[1]


def conversation(
    cwd: Path, *arguments: str, question: bytes = b"", answer: bytes = b"", **variables: str
) -> tuple[int, bytes]:
    """The exit status, and what is seen on a terminal on which ``question`` is answered."""
    running, ours = pty.fork()
    if running == 0:
        os.chdir(cwd)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs the tests in the background may ignore it
        os.execve(sys.executable, command(*arguments), environment(**variables))
    seen, answered = b"", False
    for _ in range(300):  # a signal that comes before readline waits for keys is not seen until there is another key
        if not select.select([ours], [], [], 1.0)[0]:
            if answered:
                os.write(ours, answer)
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if question and question in seen and not answered:
            os.write(ours, answer)
            answered = True
    else:
        os.kill(running, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(running, 0)[1])
    os.close(ours)
    return status, seen


def test_colours_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("slow()\n")
    assert b"\x1b[31m-slow()\x1b[0m" in terminal(tmp_path, "--dry-run", "m.py")
    for seen in (
        terminal(tmp_path, "--dry-run", "--no-color", "m.py"),
        terminal(tmp_path, "--dry-run", "m.py", NO_COLOR="1"),
        terminal(tmp_path, "--dry-run", "m.py", TERM="dumb"),
    ):
        assert b"-slow()\r\n" in seen
        assert b"\x1b[3" not in seen


def test_findings_in_colour(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("slow()\nstuck()\n")
    assert b"\x1b[1mm.py:1:1:\x1b[0m \x1b[36mFC901\x1b[0m \x1b[32m[safe fix]\x1b[0m slow call" in terminal(
        tmp_path, "check"
    )
    assert b"\x1b[2m[no fix]\x1b[0m" in terminal(tmp_path, "check")
    assert b"\x1b[3" not in terminal(tmp_path, "check", NO_COLOR="1")
    seen = terminal(tmp_path, "rules", "FC901")
    assert b"\x1b[1mFC901 slow-call\x1b[0m" in seen
    assert b"\x1b[1;36mWhat it does:\x1b[0m" in seen
    assert b"\x1b[" not in terminal(tmp_path, "rules", "--no-color", "FC901")


def test_interrupted_while_loading(tmp_path: Path) -> None:
    """From the first import on, Ctrl-C is a line."""
    (tmp_path / "click.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "fix_compile.py"), "check", "."],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "loading").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    assert running.communicate()[1] == b"interrupted\n"
    assert running.returncode == 130


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    monkeypatch.setattr(showing.time, "monotonic", lambda: now)
    show = showing.progress()
    for now in (100.5, 101.1, 101.15, 101.3):
        show(int(now * 100), 20000)
    assert capsys.readouterr().err == "\r10110 of 20000 files\r10130 of 20000 files"


def test_names_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\n.py")).write_bytes(b"slow()\n")
    done = process(".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = process("--dry-run", "missing\udcff.py", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "missing\\udcff.py: error: no such file or folder")
