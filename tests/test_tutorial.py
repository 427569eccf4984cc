"""The commands of docs/tutorial.md, run one after the other, print what the page shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from patcher import cli
from rules import load_rules

RULES = tuple(load_rules())
ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shown(lines: list[str], told: str, command: str) -> None:
    """Each line is there, in order; without a ``...`` between them, one below the other."""
    actual, at, free = told.splitlines(), 0, False
    for line in lines:
        if line == "...":
            free = True
            continue
        start = line.removesuffix("...")
        cut = start != line
        fits = [n for n in range(at, len(actual)) if actual[n] == line or (cut and actual[n].startswith(start))]
        assert fits, f"{command} does not print {line!r}, but:\n{told}"
        assert free or fits[0] == at, f"{command}: {line!r} is not the next line of:\n{told}"
        at, free = fits[0] + 1, False
    assert free or at == len(actual), f"{command} prints more:\n{told}"


@pytest.mark.slow
@pytest.mark.usefixtures("one_parent")
def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").touch()  # whatever lies above is not this project
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fix-compile"])
    monkeypatch.setenv("FIX_COMPILE_CACHE", str(tmp_path / ".cache"))
    commands = 0
    for language, title, text in BLOCKS:
        if language == "python" and title.endswith(", as written"):
            assert text in (tmp_path / title.partition(",")[0]).read_text(encoding="utf-8")
        elif language == "python":
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "console":
            for command, lines in parts(text):
                capfd.readouterr()
                cli.main(RULES, shlex.split(command)[1:])
                shown(lines, "".join(capfd.readouterr()), command)
                commands += 1
    assert commands >= 8
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


def parts(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a block, and the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found
