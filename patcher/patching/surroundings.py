"""The project around the files that are worked on: read for what it says of them, and never changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from patcher.files.discover import discover

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_INSTALLED = ("site-packages", "dist-packages")
_MOST_FILES = 10_000


@dataclass(frozen=True)
class Surroundings:
    """``files``: the other files of the projects that the given files belong to; ``whole``: whether these are all."""

    files: tuple[str, ...] = ()
    whole: bool = True


def surroundings(given: Sequence[str]) -> Surroundings:
    """What is around the ``given`` files. Of a project with too many others, none is read.

    So what is found in a file does not depend on which other files of its project are given.
    """
    real = _real(given)
    own = frozenset(real)
    every = list(islice(_files(_roots(real)), _MOST_FILES + len(own) + 1))
    others = tuple(path for path, name in zip(every, _real(every), strict=True) if name not in own)
    return Surroundings(others) if len(others) <= _MOST_FILES else Surroundings(whole=False)


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
