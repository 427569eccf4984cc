"""The user's source trees: where imports start, what belongs together, and its state in git."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from patcher.files.git import GitError, git

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_GIT_SECONDS = 10.0


def roots(paths: Iterable[str | Path]) -> tuple[str, ...]:
    """The folders from which the code below ``paths`` is imported: absolute, the most likely first, each once.

    For each path: the ``src`` folder that it is below; of a package, the folder that holds the top-most one; of a plain
    folder, or a file in one, that folder and its ``src``. Last come the folders above, as far as their names can be
    those of namespace packages: up to the project's root, or, outside of a project, one above a plain folder.
    """
    return tuple(dict.fromkeys(str(root) for path in paths for root in _roots_of(absolute(path))))


def absolute(path: str | Path) -> Path:
    """``path`` from the root of the file system; links stay, except below ``..``, which would lead elsewhere."""
    path = Path(path)
    return path.resolve() if os.pardir in path.parts else path.absolute()


def package_of(path: Path) -> Path | None:
    """The folder of the top-most package that ``path`` (absolute) belongs to, if it does to any."""
    folder = _folder_of(path)
    while not _is_package(folder):  # a plain folder inside a package belongs to it
        if not folder.name.isidentifier() or _is_project(folder):
            return None
        folder = folder.parent
    while _is_package(folder.parent):
        folder = folder.parent
    return folder


def is_installation(path: Path) -> bool:
    """Whether ``path`` is a folder that packages are installed into."""
    return path.name in _INSTALLED and path.is_dir()


def beside(file: Path) -> list[Path]:
    """A file and the other Python files in its folder; of a module among installed packages, only itself."""
    others = [] if is_installation(file.parent) else sorted(file.parent.glob("*.py"))
    return list(dict.fromkeys([file, *others]))


def commit(path: str | Path) -> tuple[str | None, bool | None]:
    """The commit that is checked out where ``path`` is, and whether the tree differs from it; None: not known.

    A tree differs when a tracked file does, or when there is a new Python file in the folder of ``path``.
    """
    folder = str(_folder_of(absolute(path)))
    head = _git(folder, "rev-parse", "--verify", "HEAD")
    if head is None:
        return None, None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if changed is None or changed:
        return head, None if changed is None else True
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    return head, None if new is None else bool(new)


def _roots_of(path: Path) -> Iterator[Path]:
    folder = _folder_of(path)
    package, project = package_of(path), _project_of(folder)
    above = [parent for parent in folder.parents if project is None or project in parent.parents]
    yield from [parent for parent in above if parent.name == "src"][:1]
    if not _is_package(folder):
        yield folder
        if (folder / "src").is_dir():
            yield folder / "src"
    start = package.parent if package else folder
    yield start
    if package and project and project.is_relative_to(package):
        yield project  # a project that is a package itself is also used from inside
    elif project:
        while start != project and start.name.isidentifier():
            start = start.parent
            yield start
    elif not package and start.name.isidentifier():
        yield start.parent


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _is_package(folder: Path) -> bool:
    return folder.name.isidentifier() and (folder / "__init__.py").is_file()


def _is_project(folder: Path) -> bool:
    return any((folder / marker).exists() for marker in _MARKERS)


def _project_of(folder: Path) -> Path | None:
    return next((candidate for candidate in (folder, *folder.parents) if _is_project(candidate)), None)


def _git(folder: str, *arguments: str) -> str | None:
    """What git says; None where it is not installed, knows no repository there, or takes too long."""
    try:
        return git(folder, *arguments, seconds=_GIT_SECONDS).decode("utf-8", "replace").strip()
    except GitError:
        return None
