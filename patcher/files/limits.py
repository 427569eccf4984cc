"""How long the project lets its lines be: as its formatter or linter is told, in the nearest file that says so."""

from __future__ import annotations

import configparser
import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BLACK = 88  # when it is told nothing
_LEAST, _MOST = 40, 320  # other numbers are no limit that somebody keeps to
_STEPS = 5  # from a ruff.toml to those that it extends


def line_limit(path: str) -> int | None:
    """How many characters a line of the code at ``path`` may have; None when nothing says it.

    Formatters (ruff, black) come before linters (flake8, pycodestyle) in the same folder. A file that cannot be read
    says nothing: it is no file of ours.
    """
    start = Path(path).absolute()
    for folder in (start, *start.parents):
        for number in _said(folder):
            if type(number) is int and _LEAST <= number <= _MOST:
                return number
        if (folder / ".git").exists():
            return None
    return None


def _said(folder: Path) -> Iterator[object]:
    tools = _table(_toml(folder / "pyproject.toml"), "tool")
    for ruff in (".ruff.toml", "ruff.toml"):
        yield _of_ruff(_toml(folder / ruff), folder)
    yield _of_ruff(_table(tools, "ruff"), folder)
    if "black" in tools:
        yield _table(tools, "black").get("line-length", _BLACK)
    yield _table(tools, "flake8").get("max-line-length")
    for name in (".flake8", "setup.cfg", "tox.ini"):
        yield from _of_sections(folder / name)


def _of_ruff(table: Mapping[str, Any], folder: Path, steps: int = _STEPS) -> object:
    own = table.get("line-length")
    if own is not None or not isinstance(table.get("extend"), str) or not steps:
        return own
    file = (folder / table["extend"]).expanduser()
    whole = _toml(file)
    extended = _table(_table(whole, "tool"), "ruff") if file.name == "pyproject.toml" else whole
    return _of_ruff(extended, file.parent, steps - 1)


def _of_sections(file: Path) -> Iterator[object]:
    sections = configparser.ConfigParser(interpolation=None)
    try:
        sections.read_string(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return
    for name in ("flake8", "pycodestyle"):
        for key in ("max-line-length", "max_line_length"):
            told = sections.get(name, key, fallback="").partition("#")[0].strip()
            yield int(told) if told.isdecimal() else None


def _toml(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        return tomllib.loads(file.read_text(encoding="utf-8"))
    return {}


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}
