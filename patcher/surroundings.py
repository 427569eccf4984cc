"""The project around the files that are worked on: what else may use what they define. Nothing there is changed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
import os
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


@dataclass
class Surroundings:
    """``given``: the files that are worked on. ``asked``: whether anybody has asked what is around them."""

    given: tuple[str, ...]
    asked: bool = False

    def __call__(self, words: frozenset[str]) -> list[tuple[ast.Module, str]] | None:
        """Tree and path of the other files that have one of ``words`` in them; None when they are too many to look at.

        Files that cannot be read or parsed are passed over, as Python would not run them either.
        """
        self.asked = True
        wanted = re.compile(rb"\b(?:" + b"|".join(re.escape(w).encode() for w in sorted(words)) + rb")\b")
        own = {Path(path).resolve() for path in self.given}
        found: list[tuple[ast.Module, str]] = []
        for number, path in enumerate(_files(_roots(self.given))):
            if number >= _MOST_FILES or len(found) >= _MOST_PARSED:
                return None
            if Path(path).resolve() in own:
                continue
            try:
                if not wanted.search(Path(path).read_bytes()):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append((ast.parse(read(path).text), path))
            except (OSError, SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return found

    def digest(self) -> bytes:
        """Of the names and bytes of all that can be found: the same digest, the same answers."""
        digest = hashlib.sha256()
        others = self._others()
        if others is None:
            return digest.digest()
        for path in others:
            with contextlib.suppress(OSError):
                content = hashlib.sha256(Path(path).read_bytes()).digest()
                digest.update(path.encode("utf-8", "surrogatepass") + b"\0" + content)
        return digest.digest()

    def changed_since(self, moment: int) -> bool:
        """Whether a file around was changed at ``moment`` (nanoseconds since the epoch) or later."""
        for path in self._others() or ():
            with contextlib.suppress(OSError):
                if Path(path).stat().st_mtime_ns >= moment:
                    return True
        return False

    def _others(self) -> list[str] | None:
        """The files around; None when they are too many to look at."""
        every = list(itertools.islice(_files(_roots(self.given)), _MOST_FILES + 1))
        own = {os.path.realpath(path) for path in self.given}
        return [path for path in every if os.path.realpath(path) not in own] if len(every) <= _MOST_FILES else None


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
