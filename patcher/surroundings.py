"""The project around the files that are worked on: what else may use what they define. Nothing there is changed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
import os
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from patcher.discover import discover
from patcher.source import SourceError, read

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_INSTALLED = ("site-packages", "dist-packages")
_MOST_FILES = 20_000
_MOST_PARSED = 300
#: So many bytes of the files around are kept, to be searched for other words.
_KEPT_BYTES = 64_000_000


@dataclass
class Surroundings:
    """``given``: the files that are worked on. ``asked``: whether anybody has asked what is around them.

    What is there is looked up once.
    """

    given: tuple[str, ...]
    asked: bool = False
    _read: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)
    _having: dict[frozenset[str], list[str] | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _room: int = field(default=_KEPT_BYTES, init=False, repr=False, compare=False)

    def __call__(self, words: frozenset[str], known: Container[str] = ()) -> list[tuple[ast.Module | None, str]] | None:
        """Tree and path of the other files that have one of ``words`` in them; None when they are too many to look at.

        The tree is None for paths that are ``known``. Files that cannot be read or parsed are passed over, as Python
        would not run them either.
        """
        self.asked = True
        if words not in self._having:
            self._having[words] = self._search(words)
        paths = self._having[words]
        if paths is None:
            return None
        found: list[tuple[ast.Module | None, str]] = []
        for path in paths:
            if path in known:
                found.append((None, path))
                continue
            if (tree := _parsed(path)) is not None:
                found.append((tree, path))
        return found

    def _search(self, words: frozenset[str]) -> list[str] | None:
        """The other files with one of ``words``; None when they, or all there are, are too many to look at."""
        spelled = [word.encode() for word in sorted(words)]
        wanted = re.compile(rb"\b(?:" + b"|".join(map(re.escape, spelled)) + rb")\b")
        found: list[str] = []
        for number, (path, own) in enumerate(self._listing):
            if number >= _MOST_FILES or len(found) >= _MOST_PARSED:
                return None
            if not own:
                with contextlib.suppress(OSError):
                    content = self._content(path)
                    if any(word in content for word in spelled) and wanted.search(content):
                        found.append(path)
        return found

    @cached_property
    def _listing(self) -> list[tuple[str, bool]]:
        """All files of the projects, and whether they are among those that are worked on."""
        given = _real(self.given)
        own = frozenset(given)
        files = list(itertools.islice(_files(_roots(given)), _MOST_FILES + 1))
        return [(path, real in own) for path, real in zip(files, _real(files), strict=True)]

    def _content(self, path: str) -> bytes:
        known = self._read.get(path)
        if known is None:
            known = Path(path).read_bytes()
            self._room -= len(known)
            if self._room >= 0:
                self._read[path] = known
        return known

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
        given = _real(self.given)
        own = frozenset(given)
        every = list(itertools.islice(_files(_roots(given)), _MOST_FILES + 1))
        others = [path for path, real in zip(every, _real(every), strict=True) if real not in own]
        return others if len(every) <= _MOST_FILES else None


def _parsed(path: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(read(path).text)
    except (OSError, SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _files(roots: Sequence[str]) -> Iterator[str]:
    for entry in discover(roots):
        if not entry.error:
            yield entry.path


def _real(paths: Iterable[str]) -> list[str]:
    """`os.path.realpath` of each of ``paths``; their folders are looked up once."""
    folders: dict[str, str] = {}
    found = []
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        plain = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
        found.append(os.path.join(folders[folder], name) if plain else os.path.realpath(path))
    return found


def _roots(real: Iterable[str]) -> list[str]:
    """The folders of the projects that ``real``, paths without links, belong to, none inside of another."""
    packages: dict[str, str] = {}
    outermost = {_outermost(folder, packages) for folder in {os.path.dirname(path) for path in real}}
    roots = {_root(Path(package)) for package in outermost}
    return sorted(str(r) for r in roots if roots.isdisjoint(r.parents))


def _outermost(folder: str, known: dict[str, str]) -> str:
    """The outermost package that ``folder`` is, or is in; ``folder`` itself when it is in none."""
    if folder not in known:
        above = os.path.dirname(folder)
        inside = all(os.path.exists(os.path.join(f, "__init__.py")) for f in (folder, above))
        known[folder] = _outermost(above, known) if inside and above != folder else folder
    return known[folder]


def _root(package: Path) -> Path:
    """The nearest folder above that holds a project; without one, ``package``."""
    for above in [package, *package.parents]:
        if above.name in _INSTALLED:
            break
        if any((above / mark).exists() for mark in _MARKS):
            return above
    return package
