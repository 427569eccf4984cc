"""From the paths that were given to the Python files that are worked on."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from patcher.files.source import reason
from patcher.settings import matches

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


_SKIPPED = frozenset({"__pycache__", "node_modules"})
#: Folders of what uses the models of a project, and models nothing that it ships.
_BESIDE = frozenset("test tests example examples script scripts demo demos benchmark benchmarks".split())


@dataclass(frozen=True)
class Exclude:
    """Globs for files and folders, matched against the name and against the path below ``root``."""

    patterns: tuple[str, ...] = ()
    root: str = "."

    def covers(self, path: str) -> bool:
        """Whether ``path`` is to be passed over; ``*`` also stands for slashes."""
        return any(matches(path, pattern, self.root) for pattern in self.patterns)


@dataclass(frozen=True)
class Entry:
    """A file to work on, or, when ``error`` is set, a path that cannot be.

    ``beside``: a test, an example or a script, found in a folder and not named: it tells who uses the code, and is not
    worked on unless that is asked for.
    """

    path: str
    error: str = ""
    beside: bool = False


@dataclass(frozen=True)
class _Seen:
    path: str
    real: str
    link: bool
    beside: bool = False


def discover(paths: Sequence[str], exclude: Exclude | None = None) -> list[Entry]:
    """The files below ``paths``, each once, in the order of ``paths`` and sorted inside a folder.

    A file that is named is always taken. Inside folders only ``.py`` files are, and hidden files and folders, virtual
    environments, ``__pycache__`` and ``node_modules`` are passed over. Links to folders are not followed; a link to a
    file stands for that file, unless the file itself is there too. Tests, examples and scripts are marked as such,
    unless they, or the folder of them, are named.
    """
    seen = [item for path in paths for item in _from(path, exclude or Exclude())]
    own = {item.real for item in seen if isinstance(item, _Seen) and not item.link}
    wanted = {item.real for item in seen if isinstance(item, _Seen) and not item.beside}
    entries: list[Entry] = []
    taken: set[str] = set()
    for item in seen:
        if isinstance(item, Entry):
            entries.append(item)
        elif item.real not in taken and not (item.link and item.real in own):
            taken.add(item.real)
            entries.append(Entry(item.path, beside=item.real not in wanted))
    return entries


def missing(paths: Sequence[str]) -> list[Entry]:
    """Those of ``paths`` that are not there, each with the reason."""
    found = []
    for path in paths:
        try:
            os.stat(path)
        except (OSError, ValueError) as error:
            found.append(Entry(path, _missing(path, error)))
    return found


def _from(given: str, exclude: Exclude) -> Iterator[_Seen | Entry]:
    path = given if ".." in given.split(os.sep) else os.path.normpath(given)  # a/../b is not b when a is a link
    try:
        status = os.stat(given)
    except (OSError, ValueError) as error:
        yield Entry(given, _missing(given, error))
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _walk(path, exclude)
    elif stat.S_ISREG(status.st_mode):
        yield _Seen(path, os.path.realpath(path), os.path.islink(path))
    else:
        yield Entry(path, "is neither a file nor a folder")


def _walk(top: str, exclude: Exclude) -> Iterator[_Seen | Entry]:
    waiting = [(top, False)]
    while waiting:
        folder, beside = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                inside = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield Entry(folder, f"the folder cannot be listed: {reason(error)}")
            continue
        if folder != top and any(entry.name == "pyvenv.cfg" for entry in inside):
            continue
        real = os.path.realpath(folder)
        below: list[tuple[str, bool]] = []
        for entry in inside:
            path = entry.name if folder == os.curdir else os.path.join(folder, entry.name)
            if entry.name.startswith(".") or entry.name in _SKIPPED or exclude.covers(path):
                continue
            if entry.is_symlink():
                yield from (replace(item, beside=beside or _is_test(entry.name)) for item in _link(path, real))
            elif entry.is_dir(follow_symlinks=False):
                below.append((path, beside or entry.name.lower() in _BESIDE))
            elif entry.name.endswith(".py"):
                regular, aside = entry.is_file(follow_symlinks=False), beside or _is_test(entry.name)
                yield (
                    _Seen(path, os.path.join(real, entry.name), False, aside)
                    if regular
                    else Entry(path, "is not a regular file", aside)
                )
        waiting.extend(reversed(below))


def _is_test(name: str) -> bool:
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def _link(path: str, folder: str) -> Iterator[_Seen | Entry]:
    """What a link in ``folder`` stands for; a link to a folder is passed over, and one that leads back is an error."""
    try:
        status = os.stat(path)
    except OSError as error:
        if path.endswith(".py") or error.errno == errno.ELOOP:
            yield Entry(path, _missing(path, error))
        return
    real = os.path.realpath(path)
    if stat.S_ISDIR(status.st_mode):
        if os.path.join(folder, "").startswith(os.path.join(real, "")):
            yield Entry(path, "is a link to a folder that contains it (a directory loop), not followed")
    elif path.endswith(".py"):
        yield _Seen(path, real, True) if stat.S_ISREG(status.st_mode) else Entry(path, "is not a regular file")


def _missing(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "is not a path"
    if error.errno == errno.ELOOP:
        return "is a circular symbolic link"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "is a broken symbolic link" if os.path.islink(path) else "no such file or folder"
    return f"cannot be read: {reason(error)}"
