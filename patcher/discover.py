"""From the paths that were given to the Python files that are worked on."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from patcher.source import reason

_SKIPPED = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True)
class Exclude:
    """Globs for files and folders, matched against the name and against the path below ``root``."""

    patterns: tuple[str, ...] = ()
    root: str = "."

    def covers(self, path: str) -> bool:
        """Whether ``path`` is to be passed over; ``*`` also stands for slashes."""
        if not self.patterns:
            return False
        below = os.path.relpath(os.path.abspath(path), os.path.abspath(self.root)).replace(os.sep, "/")
        forms = (os.path.basename(path), below, "/" + below)
        return any(fnmatchcase(form, pattern.rstrip("/")) for pattern in self.patterns for form in forms)


@dataclass(frozen=True)
class Entry:
    """A file to work on, or, when ``error`` is set, a path that cannot be."""

    path: str
    error: str = ""


@dataclass(frozen=True)
class _Seen:
    path: str
    real: str
    link: bool


def discover(paths: Sequence[str], exclude: Exclude | None = None) -> list[Entry]:
    """The files below ``paths``, each once, in the order of ``paths`` and sorted inside a folder.

    A file that is named is always taken. Inside folders only ``.py`` files are, and hidden files and folders, virtual
    environments, ``__pycache__`` and ``node_modules`` are passed over. Links to folders are not followed; a link to a
    file stands for that file, unless the file itself is there too.
    """
    seen = [item for path in paths for item in _from(path, exclude or Exclude())]
    own = {item.real for item in seen if isinstance(item, _Seen) and not item.link}
    entries: list[Entry] = []
    taken: set[str] = set()
    for item in seen:
        if isinstance(item, Entry):
            entries.append(item)
        elif item.real not in taken and not (item.link and item.real in own):
            taken.add(item.real)
            entries.append(Entry(item.path))
    return entries


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
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                inside = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield Entry(folder, f"the folder cannot be listed: {reason(error)}")
            continue
        if folder != top and any(entry.name == "pyvenv.cfg" for entry in inside):
            continue
        real = os.path.realpath(folder)
        below: list[str] = []
        for entry in inside:
            path = entry.name if folder == os.curdir else os.path.join(folder, entry.name)
            if entry.name.startswith(".") or entry.name in _SKIPPED or exclude.covers(path):
                continue
            if entry.is_symlink():
                yield from _link(path, real)
            elif entry.is_dir(follow_symlinks=False):
                below.append(path)
            elif entry.name.endswith(".py"):
                regular = entry.is_file(follow_symlinks=False)
                yield (
                    _Seen(path, os.path.join(real, entry.name), False)
                    if regular
                    else Entry(path, "is not a regular file")
                )
        waiting.extend(reversed(below))


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
