"""The project around the files that are worked on: what else may use what they define. Nothing there is changed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.discover import discover
from patcher.source import SourceError, read

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_INSTALLED = ("site-packages", "dist-packages")
_MOST_FILES = 20_000
_MOST_PARSED = 300


@dataclass(frozen=True)
class Surroundings:
    """``given``: the files that are worked on."""

    given: tuple[str, ...]

    def __call__(self, words: frozenset[str]) -> list[tuple[ast.Module, str]] | None:
        """Tree and path of the other files that have one of ``words`` in them; None when they are too many to look at.

        Files that cannot be read or parsed are passed over, as Python would not run them either.
        """
        asked = re.compile(rb"\b(?:" + b"|".join(re.escape(w).encode() for w in sorted(words)) + rb")\b")
        own = {Path(path).resolve() for path in self.given}
        found: list[tuple[ast.Module, str]] = []
        for number, path in enumerate(_files(_roots(self.given))):
            if number >= _MOST_FILES or len(found) >= _MOST_PARSED:
                return None
            if Path(path).resolve() in own:
                continue
            try:
                if not asked.search(Path(path).read_bytes()):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append((ast.parse(read(path).text), path))
            except (OSError, SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return found


def _files(roots: Sequence[str]) -> Iterator[str]:
    for entry in discover(roots):
        if not entry.error:
            yield entry.path


def _roots(given: Sequence[str]) -> list[str]:
    """The folders of the projects that ``given`` belong to, none inside of another."""
    roots = {_root(folder) for folder in {Path(path).resolve().parent for path in given}}
    return sorted(str(r) for r in roots if not any(other in r.parents for other in roots))


def _root(package: Path) -> Path:
    """The nearest folder above that holds a project; without one, that of the outermost package."""
    while (package / "__init__.py").exists() and (package.parent / "__init__.py").exists():
        package = package.parent
    for above in [package, *package.parents]:
        if above.name in _INSTALLED:
            break
        if any((above / mark).exists() for mark in _MARKS):
            return above
    return package
