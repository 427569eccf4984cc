"""What a check compares with: a baseline of known findings, lines changed since a revision, and what is staged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from toy import RULES

from patcher import cli
from patcher.patching.check import DiffBaseError, changed_lines

ROOT = Path(__file__).resolve().parent.parent
Git = Callable[..., bytes]
Check = Callable[..., tuple[int, list[str], str]]
BLOCK = "def f():\n    slow()\n    stuck()\n    slow()\n"


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Status, the findings as ``path:line``, and all that was said, of ``check`` in a folder with ``m.py``."""
    (tmp_path / "m.py").write_text(BLOCK)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, list[str], str]:
        status = cli.main(RULES, ["check", "--no-cache", *arguments])
        out, err = capsys.readouterr()
        places = [line.strip().rpartition(": FC")[0] for line in out.splitlines() if ": FC" in line]
        return status, [place.rpartition(":")[0] for place in places], out + err

    return run


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Git]:
    """Runs git in a repository, whose first commit is made by ``check``'s files."""
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "core.hooksPath=.git/hooks")

    def run(*arguments: str, fails: bool = False) -> bytes:
        done = subprocess.run(["git", *named, *arguments], cwd=tmp_path, capture_output=True, check=False)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    yield run


def test_known_findings_are_quiet_and_new_ones_fail(check: Check, tmp_path: Path) -> None:
    known = ("--baseline", "known.json")
    assert check()[0] == 1
    assert check(*known, "--write-baseline") == (0, [], "3 findings written to known.json\n")
    first = Path("known.json").read_bytes()
    assert json.loads(first)["findings"] == {
        "m.py": [
            {"rule": "FC901", "scope": "f", "code": "slow()", "count": 2},
            {"rule": "FC901", "scope": "f", "code": "stuck()"},
        ]
    }
    status, found, told = check(*known)
    assert (status, found) == (0, [])
    assert "no new findings in 1 file; 3 known" in told
    Path("m.py").write_text("# moved\n\n" + BLOCK.replace("slow()", "slow( )  # why", 1))
    assert check(*known)[:2] == (0, [])
    Path("m.py").write_text(BLOCK + "    slow()\n")  # one more of what is known
    assert check(*known)[:2] == (1, ["m.py:5"])
    Path("m.py").write_text(BLOCK + "\n\ndef g():\n    slow()\n")  # in another scope
    assert check(*known)[:2] == (1, ["m.py:8"])
    Path("m.py").write_text(BLOCK.replace("    stuck()\n", ""))
    assert "; 2 known; 1 known no more there (--write-baseline forgets)" in check(*known)[2]
    Path("m.py").rename("n.py")  # what was moved is still known
    assert check(*known)[:2] == (0, [])
    assert check(*known, "--write-baseline")[2] == "2 findings written to known.json\n"
    Path("m.py").write_text(BLOCK)  # and a copy is not
    assert check(*known)[:2] == (1, ["m.py:2", "m.py:4", "m.py:3"])


def test_the_configuration_names_a_baseline(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\nbaseline = 'ci/known.json'\n")
    (tmp_path / "ci").mkdir()
    assert "ci/known.json: cannot be read: no such file" in check()[2]
    assert check("--write-baseline")[0] == 0
    assert list(json.loads((tmp_path / "ci/known.json").read_text())["findings"]) == ["../m.py"]
    monkeypatch.chdir(tmp_path / "ci")
    assert check("..")[:2] == (0, [])


def test_without_a_name_a_baseline_has_one(check: Check) -> None:
    assert check("--write-baseline")[2] == "3 findings written to fix-compile-baseline.json\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "is no baseline: no JSON"),
        ("[]", "is no baseline of this version (schema 1)"),
        ('{"schema": 2}', "is no baseline of this version (schema 1)"),
        ('{"schema": 1, "findings": {"m.py": [{"rule": "FC901"}]}}', "is a damaged baseline"),
        ('{"schema": 1, "findings": []}', "is a damaged baseline"),
    ],
)
def test_what_is_no_baseline(check: Check, text: str, told: str) -> None:
    Path("known.json").write_text(text)
    status, _, said = check("--baseline", "known.json")
    assert (status, said.count("\n")) == (2, 1)
    assert f"--baseline: known.json: {told}" in said


def test_a_baseline_is_not_written_when_a_file_fails(check: Check) -> None:
    Path("bad.py").write_text("def\n")
    status, _, told = check("--write-baseline", "--baseline", "known.json")
    assert status == 2
    assert told.endswith("no baseline was written\n")
    assert not Path("known.json").exists()


def test_only_what_is_on_changed_lines(check: Check, git: Git, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(BLOCK)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    assert check("--diff-base", "HEAD")[:2] == (0, [])
    (tmp_path / "m.py").write_text(BLOCK.replace("    slow()\n", "    slow()\n    x = slow()\n", 1))
    (tmp_path / "né w.py").write_text("slow()\n")  # not known to git
    git("mv", "other.py", 'odd"name\t.py')
    (tmp_path / 'odd"name\t.py').write_text(BLOCK.replace("stuck()", "slow()  # +++ b/x.py"))
    assert sorted(check("--diff-base", "HEAD", ".")[1]) == ["m.py:3", "né w.py:1", 'odd"name\t.py:3']
    git("checkout", "-qb", "topic")
    git("add", "-A")
    git("commit", "-qm", "second")
    git("checkout", "-q", "main")
    (tmp_path / "m.py").write_text(BLOCK.replace("slow()", "slow() ", 1) + "\n\nslow()\n")
    git("commit", "-qam", "what others did meanwhile")
    git("checkout", "-q", "topic")
    assert len(check("--diff-base", "main")[1]) == 3
    assert check("--diff-base", "topic")[:2] == (0, [])
    assert "--diff-base: there is no revision 'nosuch' in" in check("--diff-base", "nosuch")[2]


def test_changed_lines_of_what_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(DiffBaseError, match="is in no git repository"):
        changed_lines("HEAD", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fix", "--baseline", "x", "m.py"), "--baseline goes with --verify-only"),
        (("diff", "--diff-base", "x", "m.py"), "--diff-base goes with --verify-only"),
        (("check", "--diff-base", "x", "--write-baseline"), "exclude each other"),
    ],
)
def test_they_are_for_checks(
    capsys: pytest.CaptureFixture[str], check: Check, arguments: tuple[str, ...], told: str
) -> None:
    assert cli.main(RULES, list(arguments)) == 2
    assert told in capsys.readouterr().err


MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return {}
"""
BREAK = "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n"


def test_the_hook_looks_at_what_is_staged(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pre-commit itself, with our hook as it is published, but for where it is installed."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    hook |= {"language": "system", "entry": f"{Path(sys.executable).parent}/{hook['entry']}"}
    (tmp_path / ".pre-commit-config.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": [hook]}]}))
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path.parent / "pre-commit"))
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    subprocess.run([sys.executable, "-m", "pre_commit", "install"], check=True, capture_output=True)
    clean, broken = MODEL.format("x"), MODEL.format("x").replace("        return", BREAK + "        return")
    net = tmp_path / "net.py"
    net.write_text(clean)
    git("add", ".")
    git("commit", "-qm", "clean")
    net.write_text(broken)
    git("add", "net.py")
    net.write_text(clean)  # the break is staged alone
    told = git("commit", "-qm", "a break", fails=True).decode()
    assert "net.py:7:9: FC101 [safe fix]" in told
    assert net.read_text() == clean
    net.write_text(clean.replace("return x", "return x + 1"))
    git("add", "net.py")
    net.write_text(broken)  # and now it is not
    git("commit", "-qm", "no break")
    assert net.read_text() == broken
